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

// A history summarizes the removed instances of a container whose pod still exists. It is
// stored in a tag of the newest machine, so that restart counts only grow, a container that
// must not run again does not, and back-off continues.
type history struct {
	Restarts int32 `json:"restarts"`
	Exit     *exit `json:"exit,omitempty"` // nil: disregarded
}

type exit struct {
	Code     int32     `json:"code"`
	Hash     uint64    `json:"hash"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
}

// forget removes an instance after it was recorded in the history. An instance that does not
// exist is ignored.
func (r *Runtime) forget(ctx context.Context, machines []Machine, id string, exitCounts bool) error {
	status := statusOf("", machines)
	for i := range status.Containers {
		c := &status.Containers[i]
		if c.ID != id {
			continue
		}
		if was, ok := historyOf(machines)[c.Name]; !ok || was.Restarts <= c.RestartCount {
			if err := r.record(ctx, &machines[0], c, exitCounts); err != nil {
				return err
			}
		}
		if err := r.cloud.RemoveProcess(ctx, bare(id)); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
	}
	return nil
}

// record stores the history of a container in a tag.
func (r *Runtime) record(ctx context.Context, newest *Machine, c *runtime.ContainerStatus, exitCounts bool) error {
	p := history{Restarts: c.RestartCount}
	if exitCounts {
		p.Exit = &exit{Code: c.ExitCode, Hash: c.Hash, Created: c.CreatedAt, Started: c.StartedAt, Finished: c.FinishedAt}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tag := map[string]string{tagHistory + c.Name: string(text)}
	if err := r.cloud.TagMachine(ctx, newest.ID, tag); err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return err
	}
	maps.Copy(newest.Tags, tag) // for the next record
	return nil
}

// historyOf returns the history by container. An invalid tag is ignored.
func historyOf(machines []Machine) map[string]history {
	all := map[string]history{}
	for tag, text := range carried(machines, map[string]string{}) {
		var p history
		if json.Unmarshal([]byte(text), &p) == nil {
			all[strings.TrimPrefix(tag, tagHistory)] = p
		}
	}
	return all
}

// carried adds the history of a pod to the tags of its next machine.
func carried(machines []Machine, tags map[string]string) map[string]string {
	if len(machines) > 0 {
		for tag, text := range machines[0].Tags {
			if strings.HasPrefix(tag, tagHistory) {
				tags[tag] = text
			}
		}
	}
	return tags
}

// addHistory adds the history to the input of the plan.
func addHistory(in *plan.Input, machines []Machine) {
	in.History.RestartCounts, in.History.Terminated, in.History.Exits = map[string]int32{}, map[string]int32{}, map[string]*runtime.ContainerStatus{}
	for name, p := range historyOf(machines) {
		in.History.RestartCounts[name] = p.Restarts
		if e := p.Exit; e != nil {
			in.History.Terminated[name] = e.Code
			in.History.Exits[name] = &runtime.ContainerStatus{
				Name: name, State: runtime.ContainerExited, RestartCount: p.Restarts, Hash: e.Hash, ExitCode: e.Code,
				CreatedAt: e.Created, StartedAt: e.Started, FinishedAt: e.Finished,
			}
		}
	}
}
