package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// savedPods are the checkpoints of pods of a run. run.mu guards it.
type savedPods struct {
	attempts int
	written  map[string]*v1.Pod // the pod with the images that ran, by directory
	complete map[string]string  // the directory of the last checkpoint of which the agent knows that it succeeded, by name of the pod
}

// restoreAnnotation of a pod is the directory of the checkpoint from which it is restored.
const restoreAnnotation = "sim.kubeparts.io/restore-from"

// RestoreFrom returns the directory of the checkpoint from which a pod of a Restore step is restored; "" for other
// pods. A Machine passes it to its engine.
func RestoreFrom(pod *v1.Pod) string { return pod.Annotations[restoreAnnotation] }

// checkpointerOf returns the runtime as a runtime.PodCheckpointer; nil if it is none.
func checkpointerOf(rt runtime.Runtime) (runtime.PodCheckpointer, error) {
	if err := compose.Check(rt, reflect.TypeFor[runtime.PodCheckpointer]()); err != nil {
		return nil, fmt.Errorf("sim: the runtime of the machine: %w", err)
	}
	checkpointer, _ := compose.As[runtime.PodCheckpointer](rt)
	return checkpointer, nil
}

func (s Schedule) hasCheckpoints() bool {
	return slices.ContainsFunc(s, func(step Step) bool { return step.Do == Checkpoint })
}

// checkpoint makes the agent write a checkpoint of a pod. It does not wait: the call may hang.
func (r *run) checkpoint(ctx context.Context, uid types.UID) {
	pod, static := r.store.get(uid)
	r.mu.Lock()
	a := r.agent
	r.saved.attempts++
	dir := filepath.Join(r.dir, fmt.Sprint("checkpoint-", r.saved.attempts))
	r.mu.Unlock()
	if pod == nil || static || len(pod.Spec.ResourceClaims) > 0 || a == nil || a.checkpointer == nil {
		return
	}
	r.background.Go(func() {
		if os.Mkdir(dir, 0o700) != nil || a.checkpointer.CheckpointPod(ctx, pod, dir) != nil || a.isDead() {
			return // the checkpoint has failed, although it may have been written
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.saved.complete == nil {
			r.saved.complete = map[string]string{}
		}
		r.saved.complete[pod.Name] = dir
	})
}

// saveCheckpoint records the pod of a checkpoint that the runtime has written.
func (r *run) saveCheckpoint(a *Agent, uid types.UID, dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.truth.pod(uid)
	if p.spec == nil || !r.noteLocked(Entry{Agent: a.agent, Kind: PodCheckpointed, UID: uid, Call: filepath.Base(dir)}) {
		return
	}
	pod := p.spec.DeepCopy()
	for _, inst := range p.running() {
		if c := podspec.Container(pod, inst.Name); c != nil {
			c.Image = inst.Image
		}
	}
	if r.saved.written == nil {
		r.saved.written = map[string]*v1.Pod{}
	}
	r.saved.written[dir] = pod
}

// restore adds a pod with the spec of a checkpoint.
func (r *run) restore(s Step) {
	r.mu.Lock()
	dir := r.saved.complete[s.From]
	saved := r.saved.written[dir]
	r.mu.Unlock()
	if saved == nil {
		return
	}
	pod := saved.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{Name: s.Pod, Namespace: saved.Namespace, UID: s.podUID(), Annotations: map[string]string{restoreAnnotation: dir}}
	pod.Status = v1.PodStatus{}
	r.setIncarnation(pod)
	r.create(pod)
}

// addRestored adds a sandbox that was restored, with its instances.
func (p *podTruth) addRestored(sandbox string) {
	if p.restored == nil {
		p.restored, p.begun = map[string][]string{}, map[string]bool{}
	}
	ids := []string{}
	for id, c := range p.instances {
		if c.SandboxID == sandbox && c.State == runtime.ContainerCreated {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	p.restored[sandbox] = ids
}
