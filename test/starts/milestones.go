//go:build unix

package starts

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// milestones are the times of a pod. Those that a program does not have are zero.
type milestones struct {
	uid      types.UID
	bound    time.Time // the API server has created it
	admitted time.Time // a watch has its first status of the node
	running  time.Time // its container has started
	reported time.Time // a watch has the status Running and Ready
	writes   int       // versions of the pod in the watch until then, without the first
	calls    []call
}

// A figure is a line of a table.
type figure struct {
	name   string
	format string // of fmt, for one value
	of     func(m milestones) (value float64, ok bool)
}

// millis returns the time between two milestones.
func millis(from, to time.Time) (float64, bool) {
	return float64(to.Sub(from).Microseconds()) / 1000, !from.IsZero() && !to.IsZero()
}

// figures are the lines of a table, in their order.
var figures = []figure{
	{"bound to first status in a watch", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.bound, m.admitted) }},
	{"bound to call of RunPodSandbox", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.bound, m.find("RunPodSandbox").begin) }},
	{"bound to sandbox", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.bound, m.find("RunPodSandbox").end) }},
	{"bound to container", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.bound, m.find("CreateContainer").end) }},
	{"bound to running in the runtime", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.bound, m.running) }},
	{"of this, CRI calls for the pod", "%.0f ms", func(m milestones) (float64, bool) {
		return float64(m.inCalls().Microseconds()) / 1000, !m.running.IsZero()
	}},
	{"of this, the share of the node", "%.0f ms", func(m milestones) (float64, bool) {
		total, ok := millis(m.bound, m.running)
		return total - float64(m.inCalls().Microseconds())/1000, ok
	}},
	{"running to its status in a watch", "%.0f ms", func(m milestones) (float64, bool) { return millis(m.running, m.reported) }},
	{"statuses in a watch until then", "%.0f", func(m milestones) (float64, bool) { return float64(m.writes), !m.reported.IsZero() }},
}

// find returns the first call of a method.
func (m milestones) find(method string) call {
	for _, c := range m.calls {
		if c.method == method {
			return c
		}
	}
	return call{}
}

// inCalls returns the time from bound to running in which a CRI call for the pod was in progress.
func (m milestones) inCalls() (sum time.Duration) {
	at := m.bound
	for _, c := range slices.SortedFunc(slices.Values(m.calls), func(a, b call) int { return a.begin.Compare(b.begin) }) {
		begin, end := c.begin, c.end
		if begin.Before(at) {
			begin = at
		}
		if end.After(m.running) {
			end = m.running
		}
		if end.After(begin) {
			sum, at = sum+end.Sub(begin), end
		}
	}
	return sum
}
