package replay

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/sim/record"
)

// draws are the recorded random numbers. Those of the prober, and those of older
// recordings, do not contain which pod they were drawn for.
type draws struct {
	queues  map[drawKey][]*drawn
	missing int // numbers that were not recorded

	// probe is the frame of the probe that returned last, and at when it did: the numbers that
	// are drawn at that instant follow the frame.
	probe int
	at    time.Duration
}

type drawKey struct {
	name string
	pod  types.UID
}

type drawn struct {
	record.Draw
	index int
	at    time.Duration
	used  bool
}

// drawWindow is the largest difference of the times of a draw and its recorded one.
const drawWindow = 10 * time.Second

func newDraws(x *index) draws {
	d := draws{queues: map[drawKey][]*drawn{}, at: -1}
	for i, f := range x.draws {
		key := drawKey{f.Draw.Name, f.Draw.Pod}
		d.queues[key] = append(d.queues[key], &drawn{Draw: *f.Draw, index: x.drawAt[i], at: f.At})
	}
	return d
}

// next returns the next number of a name for a pod and a delay; empty and zero mean none. otherwise is the result if
// no number was recorded.
func (d *draws) next(name string, pod types.UID, of, now time.Duration, otherwise float64) float64 {
	key := drawKey{name, pod}
	q := d.queues[key]
	if q == nil { // an older recording
		key.pod = ""
		q = d.queues[key]
	}
	for len(q) > 0 && (q[0].used || q[0].at < now-drawWindow) {
		q = q[1:]
	}
	d.queues[key] = q
	afterProbe := 0
	if name == "prober" && d.at == now {
		afterProbe = d.probe
	}
	var best *drawn
	for _, v := range q {
		if v.at > now+drawWindow {
			break
		}
		if v.used || v.index < afterProbe {
			continue
		}
		if v.Of == of {
			best = v
			break
		}
		if best == nil {
			best = v
		}
	}
	if best == nil {
		d.missing++
		return otherwise
	}
	best.used = true
	return best.Value
}
