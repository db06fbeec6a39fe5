package replay

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// missing is the name of the operation that records that Has of Cgroups returned false.
const missing = "missing"

// earlyMissing is how much earlier than recorded a cgroup may be missing: a recorded sync
// takes time, a replayed one does not.
const earlyMissing = 500 * time.Millisecond

// Has returns false once for each time that it was recorded.
func (c cgroups) Has(pod *v1.Pod) bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	now, times, n := c.w.now(), c.w.x.missing[pod.UID], c.w.missed[pod.UID]
	for n < len(times) && times[n]+c.w.tolerance < now {
		n++
	}
	missing := n < len(times) && times[n]-earlyMissing <= now
	if missing {
		n++
	}
	c.w.missed[pod.UID] = n
	return !missing
}

// syncMissing syncs pods when the recorded agent found that their cgroups did not exist: periodic syncs of a replay
// may be at other times.
func (w *world) syncMissing(ctx context.Context) {
	type moment struct {
		pod types.UID
		at  time.Duration
	}
	var moments []moment
	for uid, times := range w.x.missing {
		for _, at := range times {
			moments = append(moments, moment{uid, at})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pod, b.pod)) })
	for _, m := range moments {
		if w.sleepUntil(ctx, "missing "+string(m.pod), m.at) != nil {
			return
		}
		w.table.PodChanged(m.pod)
	}
}
