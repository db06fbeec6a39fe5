package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A past is what is kept of instances of a container that are removed while their pod
// goes on, in a tag of its newest machine: restart counts only grow, a container that
// has had its run has had it, and back-off goes on.
type past struct {
	Restarts int32 `json:"restarts"`
	Exit     *exit `json:"exit,omitempty"` // nil: it does not count
}

type exit struct {
	Code     int32     `json:"code"`
	Hash     uint64    `json:"hash"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
}

// forget removes an instance, once it is written down. What is not there any more needs
// neither.
func (r *Runtime) forget(ctx context.Context, machines []Machine, id string, exitCounts bool) error {
	status := statusOf("", machines)
	for i := range status.Containers {
		c := &status.Containers[i]
		if c.ID != id {
			continue
		}
		if was, ok := pastOf(machines)[c.Name]; !ok || was.Restarts <= c.RestartCount {
			if err := r.note(ctx, &machines[0], c, exitCounts); err != nil {
				return err
			}
		}
		if err := r.cloud.RemoveProcess(ctx, bare(id)); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (r *Runtime) note(ctx context.Context, newest *Machine, c *runtime.ContainerStatus, exitCounts bool) error {
	p := past{Restarts: c.RestartCount}
	if exitCounts {
		p.Exit = &exit{Code: c.ExitCode, Hash: c.Hash, Created: c.CreatedAt, Started: c.StartedAt, Finished: c.FinishedAt}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tag := map[string]string{tagPast + c.Name: string(text)}
	if err := r.cloud.TagMachine(ctx, newest.ID, tag); err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return err
	}
	maps.Copy(newest.Tags, tag) // for the next one that goes
	return nil
}

// pastOf reads what is kept, by container. A tag that somebody spoilt is none.
func pastOf(machines []Machine) map[string]past {
	all := map[string]past{}
	for tag, text := range carried(machines, map[string]string{}) {
		var p past
		if json.Unmarshal([]byte(text), &p) == nil {
			all[strings.TrimPrefix(tag, tagPast)] = p
		}
	}
	return all
}

// carried adds the past of a pod to the tags of its next machine.
func carried(machines []Machine, tags map[string]string) map[string]string {
	if len(machines) > 0 {
		for tag, text := range machines[0].Tags {
			if strings.HasPrefix(tag, tagPast) {
				tags[tag] = text
			}
		}
	}
	return tags
}

// remember tells the planner of the past.
func remember(in *plan.Input, machines []Machine) {
	in.Counts, in.Over, in.Ended = map[string]int32{}, map[string]int32{}, map[string]*runtime.ContainerStatus{}
	for name, p := range pastOf(machines) {
		in.Counts[name] = p.Restarts
		if e := p.Exit; e != nil {
			in.Over[name] = e.Code
			in.Ended[name] = &runtime.ContainerStatus{
				Name: name, State: runtime.ContainerExited, RestartCount: p.Restarts, Hash: e.Hash, ExitCode: e.Code,
				CreatedAt: e.Created, StartedAt: e.Started, FinishedAt: e.Finished,
			}
		}
	}
}
