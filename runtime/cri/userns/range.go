package userns

import (
	"fmt"
	"strconv"
	"strings"
)

// block is the minimum number of IDs per pod, which images rely on.
const block = 65536

// A Range is a range of Length host IDs starting at First.
type Range struct{ First, Length int64 }

// check returns an error if the range is invalid or too small (rule se-18).
func (r Range) check(perPod int64, maxPods int) error {
	switch {
	case r.First%block != 0:
		return fmt.Errorf("start %d is not a multiple of %d", r.First, block)
	case r.First < block:
		return fmt.Errorf("start %d is below %d", r.First, block)
	case r.Length%block != 0:
		return fmt.Errorf("length %d is not a multiple of %d", r.Length, block)
	case r.Length < 0 || r.Length > 1<<32-r.First:
		return fmt.Errorf("%d IDs from %d exceed the 32-bit range", r.Length, r.First)
	case r.blocks(perPod) < int64(maxPods):
		return fmt.Errorf("%d IDs are not enough for %d pods with %d each", r.Length, maxPods, perPod)
	}
	return nil
}

// blocks returns the number of blocks of the range. A block that contains the ID 2^32-1,
// which means no ID, is not one of them: the kernel does not map it.
func (r Range) blocks(perPod int64) int64 {
	n := r.Length / perPod
	if n > 0 && r.First+n*perPod == 1<<32 {
		n--
	}
	return n
}

// ParseSubIDs parses the output of `getsubids <user>` and `getsubids -g <user>`, one
// line each: "0: kubelet 65536 7208960". It returns an error if the ranges of user and
// group IDs differ (rule se-18).
func ParseSubIDs(uids, gids string) (Range, error) {
	of, err := parseSubIDs(uids)
	if err != nil {
		return Range{}, fmt.Errorf("userns: subordinate user IDs: %w", err)
	}
	groups, err := parseSubIDs(gids)
	if err != nil {
		return Range{}, fmt.Errorf("userns: subordinate group IDs: %w", err)
	}
	if of != groups {
		return Range{}, fmt.Errorf("userns: subordinate user IDs %v differ from group IDs %v", of, groups)
	}
	return of, nil
}

func parseSubIDs(text string) (Range, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	fields := strings.Fields(lines[0])
	if len(lines) != 1 || len(fields) != 4 {
		return Range{}, fmt.Errorf("expected one line with four fields, got %q", text)
	}
	first, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return Range{}, err
	}
	length, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil {
		return Range{}, err
	}
	return Range{First: int64(first), Length: int64(length)}, nil
}
