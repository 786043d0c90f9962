# SPDX-License-Identifier: BSD-3-Clause
"""Groups: sets of ranks in an order, of which Comm.Create makes communicators."""

from collections.abc import Sequence
from typing import Any, Final, Optional, TypeVar

from ._environment import reduced
from ._errors import ERR_ARG, ERR_GROUP, ERR_RANK, Exception

UNDEFINED: Final = -32766
PROC_NULL: Final = -2
# Results of Compare, of groups and of communicators
IDENT: Final = 0
CONGRUENT: Final = 1
SIMILAR: Final = 2
UNEQUAL: Final = 3

Own = TypeVar("Own", bound="Group")
Ranges = Sequence[Sequence[int]]


def similarity(first: Sequence[int], second: Sequence[int]) -> int:
    """SIMILAR: the same ranks in another order. IDENT if the order is the same."""
    if tuple(first) == tuple(second):
        return IDENT
    return SIMILAR if sorted(first) == sorted(second) else UNEQUAL


class Group:
    """Its members are ranks of COMM_WORLD. It needs no other rank, and nothing ends it but Free of
    this object. Any thread may use it. Groups of the same members in the same order are equal."""

    _members: Optional[tuple[int, ...]]
    _own: int  # this rank, of COMM_WORLD

    def __new__(cls: type[Own], group: "Optional[Group]" = None) -> Own:
        made = object.__new__(cls)
        made._members, made._own = (None, -1) if group is None else (group._members, group._own)
        return made

    @classmethod
    def of(cls: type[Own], members: Sequence[int], own: int) -> Own:
        """Not of mpi4py: the group of these ranks of COMM_WORLD, of which this one is `own`."""
        made = cls()
        made._members, made._own = tuple(members), own
        return made

    @property
    def members(self) -> tuple[int, ...]:
        """Not of mpi4py: by rank, their ranks in COMM_WORLD. Raises Exception for GROUP_NULL."""
        if self._members is None:
            raise Exception(ERR_GROUP, "the group is GROUP_NULL, or has been freed")
        return self._members

    def _with(self: Own, members: Sequence[int]) -> Own:
        return type(self).of(members, self._own)

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def rank(self) -> int:
        """UNDEFINED if this rank is no member."""
        return self.members.index(self._own) if self._own in self.members else UNDEFINED

    def Get_size(self) -> int:
        return self.size

    def Get_rank(self) -> int:
        return self.rank

    def Translate_ranks(self, ranks: Optional[Sequence[int]] = None,
                        group: "Optional[Group]" = None) -> list[int]:
        """The ranks that these ranks, or all, have in another group. Without a group: in
        COMM_WORLD."""
        own, other = self.members, None if group is None else group.members
        chosen = range(len(own)) if ranks is None else ranks
        result = []
        for rank in chosen:
            if rank == PROC_NULL:
                result.append(PROC_NULL)
                continue
            member = own[self._checked(rank)]
            result.append(member if other is None else
                          other.index(member) if member in other else UNDEFINED)
        return result

    def _checked(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise Exception(ERR_RANK, f"rank {rank} is not in a group of {self.size} ranks")
        return rank

    def Compare(self, group: "Group") -> int:
        return similarity(self.members, group.members)

    def Dup(self: Own) -> Own:
        return self._with(self.members)

    @classmethod
    def _made(cls: type[Own], members: Sequence[int], *groups: "Group") -> Own:
        return cls.of(members, max(group._own for group in groups))

    @classmethod
    def Union(cls: type[Own], group1: "Group", group2: "Group") -> Own:
        return cls._made([*dict.fromkeys(group1.members + group2.members)], group1, group2)

    @classmethod
    def Intersection(cls: type[Own], group1: "Group", group2: "Group") -> Own:
        kept = set(group2.members)
        return cls._made([each for each in group1.members if each in kept], group1, group2)

    Intersect = Intersection

    @classmethod
    def Difference(cls: type[Own], group1: "Group", group2: "Group") -> Own:
        left_out = set(group2.members)
        return cls._made([each for each in group1.members if each not in left_out], group1, group2)

    def Incl(self: Own, ranks: Sequence[int]) -> Own:
        """The members of these ranks, in that order."""
        chosen = [self.members[self._checked(rank)] for rank in ranks]
        if len(set(chosen)) != len(chosen):
            raise Exception(ERR_RANK, f"a rank is twice in {list(ranks)}")
        return self._with(chosen)

    def Excl(self: Own, ranks: Sequence[int]) -> Own:
        left_out = set(self.Incl(ranks).members)
        return self._with([each for each in self.members if each not in left_out])

    @staticmethod
    def _ranks_of(ranges: Ranges) -> list[int]:
        ranks: list[int] = []
        for first, last, stride in ranges:
            if stride == 0:
                raise Exception(ERR_ARG, "the stride of a range is 0")
            ranks += range(first, last + (1 if stride > 0 else -1), stride)
        return ranks

    def Range_incl(self: Own, ranks: Ranges) -> Own:
        """As Incl, of ranges (first, last, stride)."""
        return self.Incl(self._ranks_of(ranks))

    def Range_excl(self: Own, ranks: Ranges) -> Own:
        return self.Excl(self._ranks_of(ranks))

    def Free(self) -> None:
        self.members  # noqa: B018 (raises for GROUP_NULL)
        self._members = None

    def free(self) -> None:
        """As Free; it may be GROUP_NULL."""
        self._members = None

    def __bool__(self) -> bool:
        return self._members is not None

    def __eq__(self, other: object) -> bool:
        return self._members == other._members if isinstance(other, Group) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._members)

    def __reduce__(self) -> Any:
        return reduced(self, globals(), "GROUP_NULL", "GROUP_EMPTY")


GROUP_NULL: Final = Group()
GROUP_EMPTY: Final = Group.of((), -1)
