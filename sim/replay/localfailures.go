package replay

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// localReasons are the waiting reasons of containers that the agent could not create for a reason of its own, such as a
// full disk or Services that have not been read. Such a failure is not a call of the CRI; it is known from the status.
var localReasons = []string{"CreateContainerConfigError", "PreCreateHookError"}

// A localFailure is why a container was not created.
type localFailure struct {
	at     time.Duration // of the status
	reason v1.ContainerStateWaiting
}

func (f *localFailure) Error() string { return "replay: " + f.reason.Message }

// A containerKey is a container of a pod.
type containerKey struct {
	pod  types.UID
	name string
}

// masked is a masked value. The first texts that contain a value are written before it is masked elsewhere.
var masked = regexp.MustCompile(mask + "[0-9a-f]+")

// localFailures returns the recorded failures of each container in the order of their times, without repetitions.
func (x *index) localFailures() map[containerKey][]*localFailure {
	out, last := map[containerKey][]*localFailure{}, map[containerKey]string{}
	for _, f := range x.statuses {
		if f.Status.Status == nil {
			continue
		}
		for _, c := range slices.Concat(f.Status.Status.InitContainerStatuses, f.Status.Status.ContainerStatuses) {
			key := containerKey{f.Status.UID, c.Name}
			text := ""
			if w := c.State.Waiting; w != nil && slices.Contains(localReasons, w.Reason) {
				text = w.Reason + masked.ReplaceAllString(strings.ReplaceAll(w.Message, string(f.Status.UID), mask), mask)
				if text != last[key] {
					out[key] = append(out[key], &localFailure{max(0, f.At-f.Status.Took), *w})
				}
			}
			last[key] = text
		}
	}
	return out
}

// notCreated returns why the recorded agent did not create a container when the replayed one does; nil if it did. If
// the status that has the failure was written before, the attempt is one that has failed again. The caller holds mu.
func (w *world) notCreated(request []byte) error {
	f := parse(request)
	if f.Config == nil {
		return nil
	}
	now, created := w.now(), w.x.end
	lane, action := w.action("CreateContainer", request)
	for _, o := range w.outputs.lane(lane).outputs {
		if o.key == action && !o.matched {
			created = o.begin
			break
		}
	}
	key := containerKey{lane.pod, f.Config.Metadata.Name}
	for _, failure := range slices.Backward(w.failures[key]) {
		if failure.at > created {
			continue
		}
		if created <= now || failure.at < now-slack && created <= now+w.tolerance {
			return nil
		}
		w.unmatched[findKey(key)]++
		return failure
	}
	return nil
}

// findKey is the key of the read that follows a call of CreateContainer that has failed.
// The recorded agent did not make it.
func findKey(c containerKey) string {
	return readKey("ListContainers", encode(&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{podUIDLabel: string(c.pod), containerNameLabel: c.name},
	}}))
}

// localFailures is a runtime whose results have the recorded reasons of local failures.
type localFailures struct{ runtime.Runtime }

func (r localFailures) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	out, err := r.Runtime.SyncPod(ctx, req)
	for i := range out.Actions {
		if f, ok := errors.AsType[*localFailure](out.Actions[i].Err); ok {
			out.Actions[i].Reason, out.Actions[i].Message = f.reason.Reason, f.reason.Message
		}
	}
	return out, err
}
