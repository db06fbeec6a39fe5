package record

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/status"
)

// Agent wraps what a complete configuration of an agent contains: its sources, its sink, its probe handlers,
// its cgroups if they implement [Cgroups], the random numbers of the prober and of the pod
// workers, and the state that an earlier agent has left: the checkpoint of the prober and the restored statuses. The
// runtime and the hooks of volumes are wrapped by the caller, before it constructs
// what calls them; it also records the [Recorder.RuntimeState]. The agent inspects pods by calls, also where the
// status of an event would do. compose.Adjust makes an element of kubelet.Config.Adjust of it.
func (r *Recorder) Agent(cfg *agent.Config) {
	wrapped := &Agent{Sources: slices.Sorted(maps.Keys(cfg.Sources)), Probes: cfg.Subsystems.Probes != prober.Handlers{}, Cgroups: cfg.Subsystems.Cgroups != nil}
	r.add(0, func(*encoder) Frame { return Frame{Agent: wrapped} })
	cfg.Sources = maps.Clone(cfg.Sources)
	for name, source := range cfg.Sources {
		cfg.Sources[name] = r.Source(name, source)
	}
	if cfg.Sink != nil {
		cfg.Sink = r.Sink(cfg.Sink)
	}
	cfg.Subsystems.Probes = r.Handlers(cfg.Subsystems.Probes)
	if c, ok := cfg.Subsystems.Cgroups.(Cgroups); ok {
		cfg.Subsystems.Cgroups = r.Cgroups(c)
	}
	cfg.Adjust = append(slices.Clone(cfg.Adjust),
		compose.Adjust(func(c *status.Config) {
			if c.Restore != nil {
				c.Restore = r.restored(c.Restore)
			}
		}),
		compose.Adjust(func(c *pleg.Config) { c.Runtime = reading{c.Runtime} }),
		compose.Adjust(func(c *prober.Config) {
			if c.Path != "" {
				r.checkpoint(c.Path, ProbesFile)
			}
			next := c.Schedule.Rand
			if next == nil {
				next = rand.Float64
			}
			c.Schedule.Rand = func() float64 {
				v := next()
				r.Draw("prober", v)
				return v
			}
		}),
		compose.Adjust(func(c *podworker.Config) {
			next := c.Jitter
			if next == nil {
				next = podworker.NewJitter()
			}
			c.Jitter = func(uid types.UID, d time.Duration) time.Duration {
				v := next(uid, d)
				if d > 0 {
					draw := &Draw{Name: "podworker", Value: float64(v) / float64(d), Of: d, Pod: uid}
					r.add(drawBytes, func(*encoder) Frame { return Frame{Draw: draw} })
				}
				return v
			}
		}),
	)
}
