package replay

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/timeline"
	"github.com/kubeparts/kubeparts/status"
)

// newAgent constructs the agent, as the recorded one was constructed. dir is its state directory.
func (w *world) newAgent(opts Options, header string, dir string, drawn *timeline.Recorder) (*agent.Agent, error) {
	name := w.x.runtime
	if name == "" {
		name = "replay"
	}
	root := filepath.Join(dir, "root")
	if err := w.x.writeState(root); err != nil {
		return nil, err
	}
	config := cri.Config{
		Name: name, Runtime: services{w: w}, Images: imageService{w: w}, Logger: opts.Logger,
		Dirs: cri.Dirs{Root: root, PodLogs: filepath.Join(dir, "logs")},
		Node: cri.Node{IPs: func() []string { return w.x.hostIPs }},
	}
	if w.model == nil {
		config.Calls.Starts = -1
	}
	ofAgent := agent.Adjustable()
	if err := compose.CheckAdjust(opts.Adjust, append(ofAgent, reflect.TypeFor[cri.Config](), reflect.TypeFor[agent.Config]())...); err != nil {
		return nil, err
	}
	if err := compose.Apply(opts.Adjust, &config); err != nil {
		return nil, err
	}
	rt, err := cri.New(config)
	if err != nil {
		return nil, err
	}
	c := agent.Config{
		NodeName: header, Runtime: rt, Sources: map[string]podsource.PodSource{}, Sink: sink{w, drawn}, Logger: opts.Logger,
		HostIPs: func() []string { return w.x.hostIPs }, Table: w.table, Record: func(runtime.Event) {},
		Adjust: []compose.Adjustment{
			compose.Adjust(func(c *pleg.Config) { c.Runtime = lister{rt, w} }),
			compose.Adjust(func(c *status.Config) { c.Restore = w.x.restore }),
			compose.Adjust(func(c *prober.Config) {
				if w.x.hasFile(record.ProbesFile) { // it is written periodically
					c.Path = filepath.Join(root, record.ProbesFile)
				}
				c.Schedule.Rand = func() float64 { return w.draw("prober", "", 0, 0.5) }
			}),
			compose.Adjust(func(c *podworker.Config) {
				c.Jitter = func(uid types.UID, d time.Duration) time.Duration {
					return time.Duration(w.draw("podworker", uid, d, 1.25) * float64(d))
				}
				c.StatusCache = pacedStatuses{c.StatusCache, w}
			}),
		},
	}
	for _, source := range slices.Sorted(maps.Keys(w.x.sources)) {
		c.Sources[source] = w.source(source, w.x.sources[source])
		if static(source) {
			c.Static = append(c.Static, source)
		}
	}
	if len(c.Sources) == 0 {
		c.Sources[podsource.APISource] = w.source(podsource.APISource, nil)
	}
	if w.x.probed {
		c.Subsystems.Probes = prober.Handlers{Exec: handler{w}, HTTPGet: handler{w}, TCPSocket: handler{w}, GRPC: handler{w}}
	}
	if w.x.cgroups {
		c.Subsystems.Cgroups = cgroups{w}
	}
	if w.x.volumes {
		c.Subsystems.Volumes = volumes{w}
	}
	if err := compose.Apply(opts.Adjust, &c); err != nil {
		return nil, err
	}
	c.Adjust = append(c.Adjust, compose.Only(opts.Adjust, ofAgent...)...)
	c.Adjust = append(c.Adjust, compose.Adjust(func(p *pipeline.Config) {
		p.Status = pacedReporter{p.Status, w}
		p.Runtime = localFailures{p.Runtime}
	}))
	if w.model != nil {
		w.model.adjust(&c)
	}
	return agent.New(c)
}

// draw returns a recorded random number.
func (w *world) draw(name string, pod types.UID, of time.Duration, otherwise float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.draws.next(name, pod, of, w.now(), otherwise)
	if name == "prober" && (v < 0 || v >= 1) || name == "podworker" && (v < 0.5 || v > 10) {
		return otherwise // of a hostile recording
	}
	return v
}
