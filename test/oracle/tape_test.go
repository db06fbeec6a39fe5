package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A tape makes the records of a run by hand.
type tape struct {
	t       *testing.T
	at      time.Duration
	records []Record
	pods    map[string]*v1.Pod
}

func newTape(t *testing.T) *tape {
	p := &tape{t: t, pods: map[string]*v1.Pod{}}
	p.add(Record{Agent: &Agent{1, "started"}})
	return p
}

func (p *tape) add(r Record) {
	r.At = p.at
	p.records = append(p.records, r)
}

func (p *tape) wait(d time.Duration) { p.at += d }

// step records a step, and the pod of one that adds a pod.
func (p *tape) step(text string) {
	s, err := parseStep(text)
	require.NoError(p.t, err)
	p.wait(100 * time.Millisecond)
	p.add(Record{Step: &text})
	if s.Do == "add" {
		pod := s.pod()
		pod.UID, pod.Generation = "uid-web", 1
		pod.Status.Phase = v1.PodPending
		p.pods[pod.Name] = pod
		p.version(func(*v1.Pod) {})
	}
}

// version records a version of the pod "web".
func (p *tape) version(change func(pod *v1.Pod)) {
	pod := p.pods["web"].DeepCopy()
	change(pod)
	p.pods["web"] = pod
	p.add(Record{Pod: &Version{Pod: pod.DeepCopy()}})
}

// status records a status of the pod "web" with its generation observed.
func (p *tape) status(phase v1.PodPhase, change ...func(s *v1.PodStatus)) {
	p.version(func(pod *v1.Pod) {
		pod.Status.Phase, pod.Status.ObservedGeneration = phase, pod.Generation
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(1000, 0)}
		for _, c := range change {
			c(&pod.Status)
		}
	})
}

func (p *tape) gone() {
	p.add(Record{Request: &Request{Verb: "delete", Pod: "web"}})
	p.add(Record{Pod: &Version{Pod: p.pods["web"].DeepCopy(), Deleted: true}})
}

func (p *tape) deleting(grace int64) {
	p.version(func(pod *v1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(2000, 0)}, &grace
		pod.Generation++
	})
}

func (p *tape) sandbox(id, to string) {
	p.add(Record{Change: &Change{Pod: "uid-web", ID: id, To: to}})
}

// container records a change of an instance of a container, in the sandbox "s".
func (p *tape) container(name, id string, attempt uint32, to string, change ...func(*Change)) {
	c := &Change{Pod: "uid-web", Container: name, ID: id, Sandbox: "s", Attempt: attempt, To: to}
	for _, list := range [][]v1.Container{p.pods["web"].Spec.InitContainers, p.pods["web"].Spec.Containers} {
		for _, spec := range list {
			if spec.Name == name {
				c.Image = spec.Image
			}
		}
	}
	for _, f := range change {
		f(c)
	}
	p.add(Record{Change: c})
}

// runs records that an instance is created and started.
func (p *tape) runs(name, id string, attempt uint32) {
	p.container(name, id, attempt, "created")
	p.container(name, id, attempt, "running")
}

func code(n int32) func(*Change) { return func(c *Change) { c.ExitCode = n } }
func stopped(c *Change)          { c.Stopped = true }

func (p *tape) call(c Call) {
	c.Pod = "uid-web"
	p.add(Record{Call: &c})
}

func (p *tape) probe(id, kind string, exit int32) {
	p.call(Call{Method: "ExecSync", Container: "c", ID: id, Command: []string{probeCommand, kind}, Exit: exit})
}

func (p *tape) mark(m string) { p.add(Record{Mark: &m}) }

// settle records the end of a run after a quiet time.
func (p *tape) settle() {
	p.mark(markQuiet)
	p.wait(2 * settledAfter)
	p.mark(markSettled)
}

// with sets the status of a container.
func with(c v1.ContainerStatus) func(*v1.PodStatus) {
	return func(s *v1.PodStatus) { s.ContainerStatuses = []v1.ContainerStatus{c} }
}

func running(id string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: "c", ContainerID: containerID(id), State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, Started: new(true)}
}

func exited(id string, code int32) v1.ContainerStatus {
	return v1.ContainerStatus{Name: "c", ContainerID: containerID(id), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: containerID(id), ExitCode: code}}}
}

func has(kind v1.PodConditionType, is v1.ConditionStatus, at int64) func(*v1.PodStatus) {
	return func(s *v1.PodStatus) {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == kind })
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: kind, Status: is, LastTransitionTime: metav1.Unix(at, 0)})
	}
}
