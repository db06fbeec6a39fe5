package agent_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/script"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/scenarios/*.txt")

// TestScenarios plays testdata/scenarios/*.txt (package internal/script has the
// format): pods on the whole way from source to sink, over a runtime in memory,
// in virtual time. The effects of a command are the statuses that the sink gets, with the seconds
// since the start, the last status of each moment. Commands:
//
//	pod NAME POLICY CONTAINER...   the source has the pod from now on. A container is
//	                               [init=|sidecar=]name[:Policy[(code=Action)]]
//	static NAME POLICY CONTAINER...  the same for one of a file; NAME is uid/name
//	delete NAME SECONDS            the source has a deletion timestamp and grace
//	remove NAME                    the source no longer has it
//	evict NAME REASON MESSAGE      the agent evicts it
//	exit NAME CONTAINER CODE       a container exits; crash NAME: all of it does, as in a reboot
//	hang NAME CONTAINER            it ignores TERM from now on
//	container NAME OPTION...       containers of this name behave so (package runtime/fake)
//	stop-agent | start-agent       its containers keep running
//	sink-away | sink-back          the sink rejects statuses, or accepts them again
//	advance SECONDS                time passes
//	runs                           the runtime's pods with running containers
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/scenarios/*.txt", *update, func(t *testing.T, scenario *script.Script) (played *script.Script) {
		synctest.Test(t, func(t *testing.T) {
			s := &scenarios{t: t, began: time.Now(), runtime: &runtimetest.Runtime{Backoff: 10 * time.Second}, last: map[types.UID]v1.PodStatus{}, described: map[types.UID]v1.PodStatus{}}
			s.start()
			var err error
			played, err = scenario.Play(s.command)
			require.NoError(t, err)
			if s.agent != nil {
				require.NoError(t, s.agent.stop())
			}
		})
		return played
	})
}

// scenarios are the world of one file.
type scenarios struct {
	t       *testing.T
	began   time.Time
	runtime *runtimetest.Runtime
	source  *podsource.Memory
	agent   *spine
	pods    []*v1.Pod

	mu        sync.Mutex // guards the fields below
	away      bool       // the sink
	last      map[types.UID]v1.PodStatus
	described map[types.UID]v1.PodStatus
	reports   []*report
}

// A report is the last status of one pod that the sink got at one moment: the number of
// statuses before it at the same moment is not fixed, and neither is the order of two
// pods.
type report struct {
	at      time.Duration
	pod     *v1.Pod
	status  v1.PodStatus
	deleted bool
}

// start starts an agent whose source has delivered the pods after the first relist.
func (s *scenarios) start() {
	s.source = new(podsource.Memory)
	s.agent = newSpine(s.t, s.runtime, s.source, podworker.Hooks{}, s)
	synctest.Wait()
	s.source.Set(s.pods...)
}

func (s *scenarios) reportLocked(pod *v1.Pod) *report {
	at := time.Since(s.began)
	for _, h := range s.reports {
		if h.at == at && h.pod.UID == pod.UID {
			return h
		}
	}
	h := &report{at: at, pod: pod, status: s.last[pod.UID]}
	s.reports = append(s.reports, h)
	return h
}

var errAway = errors.New("the API server is away")

// UpdatePodStatus records it.
func (s *scenarios) UpdatePodStatus(_ context.Context, pod *v1.Pod, next v1.PodStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errAway
	}
	s.reportLocked(pod).status = *next.DeepCopy()
	s.last[pod.UID] = *next.DeepCopy()
	return nil
}

// DeletePod records it.
func (s *scenarios) DeletePod(_ context.Context, pod *v1.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errAway
	}
	s.reportLocked(pod).deleted = true
	return nil
}

func (s *scenarios) command(c *script.Command) ([]string, error) {
	if err := s.do(c); err != nil {
		return nil, err
	}
	synctest.Wait()
	if c.Name() == "runs" {
		return s.runs()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.reports, func(a, b *report) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	var out []string
	for _, h := range s.reports {
		described := s.described[h.pod.UID]
		lines := status.Describe(&described, &h.status)
		s.described[h.pod.UID] = h.status
		if h.deleted {
			lines = append(lines, "deleted")
		}
		for _, line := range lines {
			out = append(out, fmt.Sprintf("%gs %s: %s", h.at.Seconds(), h.pod.Name, line))
		}
	}
	s.reports = nil
	return out, nil
}

func (s *scenarios) runs() (out []string, err error) {
	pods, err := s.runtime.Pods(s.t.Context())
	for _, p := range slices.Backward(pods) {
		var names []string
		for _, c := range p.Containers {
			if c.State == runtime.ContainerRunning {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("%s %s runs %s", p.UID, p.Name, strings.Join(names, " ")))
		}
	}
	return out, err
}

func (s *scenarios) do(c *script.Command) error {
	uid := types.UID("uid-" + c.Arg(1))
	at := slices.IndexFunc(s.pods, func(p *v1.Pod) bool { return p.Name == c.Arg(1) || string(p.UID) == c.Arg(1) })
	if at >= 0 {
		uid = s.pods[at].UID
	}
	known := func() error {
		if at < 0 {
			return fmt.Errorf("there is no pod %s", c.Arg(1))
		}
		return nil
	}
	switch c.Name() {
	case "runs":
	case "pod", "static":
		pod, err := podOfScenario(c)
		if err != nil {
			return err
		}
		s.pods = append(s.pods, pod)
		s.source.Set(s.pods...)
	case "delete":
		seconds, err := c.Int(2)
		if err := errors.Join(known(), err); err != nil {
			return err
		}
		pod := s.pods[at].DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), &seconds
		s.pods[at] = pod
		s.source.Set(s.pods...)
	case "remove":
		if err := known(); err != nil {
			return err
		}
		s.pods = slices.Delete(s.pods, at, at+1)
		s.source.Set(s.pods...)
	case "evict":
		s.agent.Kill(uid, podworker.KillOptions{
			Evict: true, GracePeriodSeconds: new(int64(1)), Termination: runtime.Termination{Failed: true, Reason: c.Arg(2), Message: c.Arg(3)},
		})
	case "exit":
		code, err := c.Int(3)
		if err != nil {
			return err
		}
		return s.runtime.Exit(uid, c.Arg(2), int32(code))
	case "crash":
		s.runtime.Crash(uid)
	case "hang":
		return s.runtime.Hang(uid, c.Arg(2))
	case "container":
		b, err := fake.ParseBehavior(strings.Join(c.Words[2:], " "))
		s.runtime.Behave(c.Arg(1), b)
		return err
	case "sink-away", "sink-back":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.away = c.Name() == "sink-away"
	case "stop-agent":
		err := s.agent.stop()
		s.agent = nil
		return err
	case "start-agent":
		for i, pod := range s.pods { // the API server has the statuses that the sink got
			s.mu.Lock()
			s.pods[i] = pod.DeepCopy()
			s.pods[i].Status = s.last[pod.UID]
			s.mu.Unlock()
		}
		s.start()
	case "advance":
		wait, err := c.Seconds(1)
		time.Sleep(wait)
		return err
	default:
		return fmt.Errorf("there is no command %s", c.Name())
	}
	return nil
}

func podOfScenario(c *script.Command) (*v1.Pod, error) {
	if len(c.Words) < 4 {
		return nil, errors.New("a pod has a name, a policy and a container")
	}
	uid, name, ok := strings.Cut(c.Arg(1), "/")
	if !ok {
		uid, name = "uid-"+c.Arg(1), c.Arg(1)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(uid)},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicy(c.Arg(2))},
	}
	if c.Name() == "static" {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	}
	for _, word := range c.Words[3:] {
		kind, text, ok := strings.Cut(word, "=")
		if !ok || strings.Contains(kind, ":") {
			kind, text = "", word
		}
		container, err := containerOfScenario(text)
		if err != nil {
			return nil, err
		}
		switch kind {
		case "":
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		case "sidecar":
			container.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			fallthrough
		case "init":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		default:
			return nil, fmt.Errorf("unknown container form %q", word)
		}
	}
	return manifest.Default(pod), nil
}

func containerOfScenario(text string) (v1.Container, error) {
	name, policy, _ := strings.Cut(text, ":")
	c := v1.Container{Name: name, Image: "img-" + name}
	policy, rule, ruled := strings.Cut(strings.TrimSuffix(policy, ")"), "(")
	if policy != "" {
		c.RestartPolicy = new(v1.ContainerRestartPolicy(policy))
	}
	if ruled {
		var code int32
		when, action, _ := strings.Cut(rule, "=")
		if _, err := fmt.Sscan(when, &code); err != nil {
			return c, fmt.Errorf("the rule %q has no code: %w", rule, err)
		}
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action:    v1.ContainerRestartRuleAction(action),
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code}},
		}}
	}
	return c, nil
}
