package certificate

import (
	"cmp"
	"slices"
	"time"
)

// A Count is the number of sources of a signer in a state: "not_yet_issued", "fresh",
// "overdue_for_refresh", "expired", "denied" or "failed", as in the kubelet's metric
// podcertificate_states.
type Count struct {
	Signer, State string
	Sources       int
}

// Counts returns the numbers of sources, sorted by signer and state, without zeros.
func (c *Cache) Counts() []Count {
	now := time.Now()
	numbers := map[Count]int{}
	c.mu.Lock()
	for _, r := range c.records {
		numbers[Count{Signer: r.signer, State: r.report.name(now)}]++
	}
	c.mu.Unlock()
	counts := make([]Count, 0, len(numbers))
	for count, n := range numbers {
		count.Sources = n
		counts = append(counts, count)
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Signer, b.Signer), cmp.Compare(a.State, b.State))
	})
	return counts
}

// name returns the state of a Count.
func (s *state) name(now time.Time) string {
	switch {
	case s.rejected != nil && s.rejected.denied():
		return "denied"
	case s.rejected != nil:
		return "failed"
	case s.issued == nil:
		return "not_yet_issued"
	case now.After(s.issued.notAfter):
		return "expired"
	case s.issued.overdue(now):
		return "overdue_for_refresh"
	}
	return "fresh"
}
