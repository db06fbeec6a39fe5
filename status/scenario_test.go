package status_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/script"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// TestScenarios plays testdata/*.txt (package script has the format). A line
// lists the facts:
//
//	pod Always init=setup sidecar=log main      the pod; comes first. A container can have
//	                                            a policy and a rule: main:Never(42=Restart)
//	main=running main=exited(3) main=unknown    the instance of a container; a
//	main=exited(137,OOMKilled)                  new one where the last had exited
//	main=gone                                   all its instances were removed
//	main!CrashLoopBackOff                       the reason why it is not started, until its next change
//	sandbox=ready|stopped|new                   "new" is ready, one attempt later
//	end=terminal end=failed(Evicted) end=failed(Evicted,"low on memory")
//	end=disrupted                               the condition DisruptionTarget
//	delete finish agent-restart
//
// Each step is a second later than the one before, and leads to one line, the
// status.
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func(t *testing.T, lines *script.Script) *script.Script {
		s := scenario{now: t0}
		played, err := lines.Play(func(c *script.Command) ([]string, error) {
			line, err := s.step(c.Words)
			return []string{line}, err
		})
		require.NoError(t, err)
		return played
	})
}

// A scenario is the state of one test file.
type scenario struct {
	now      time.Time
	facts    status.Facts
	observed runtime.PodStatus
	starts   map[string]v1.ContainerStateWaiting
	finish   bool
	made     int // containers, for their IDs
}

// A word is key=value(detail,message) or key!value, or a key alone.
var word = regexp.MustCompile(`^([\w-]+)(?:([=!])(\w+)(?:\((\w+)(?:,([^()]*))?\))?)?$`)

// step applies one line and returns the resulting status.
func (s *scenario) step(words []string) (string, error) {
	s.now = s.now.Add(time.Second)
	if words[0] == "pod" {
		if len(words) < 2 {
			return "", errors.New("a pod has a restart policy")
		}
		if err := s.begin(words[1], words[2:]); err != nil {
			return "", err
		}
		words = nil
	}
	if s.facts.Pod == nil {
		return "", errors.New("the pod comes first")
	}
	for _, w := range words {
		m := word.FindStringSubmatch(w)
		if m == nil {
			return "", fmt.Errorf("unknown word %q", w)
		}
		if err := s.take(m[1], m[2], m[3], m[4], m[5]); err != nil {
			return "", err
		}
	}
	s.facts.Observed, s.facts.Waiting, s.facts.Now = &s.observed, s.starts, s.now
	st := status.Compute(s.facts)
	if s.finish {
		st = status.Terminate(s.facts.Pod, s.facts.Previous, s.now)
	}
	s.facts.Previous = st
	return describeAll(&st), nil
}

func (s *scenario) begin(policy string, containers []string) error {
	pod := podOf(v1.RestartPolicy(policy))
	for _, w := range containers {
		kind, spec, ok := strings.Cut(w, "=")
		if !ok || strings.Contains(kind, ":") {
			kind, spec = "", w
		}
		c, err := containerOf(spec)
		if err != nil {
			return err
		}
		switch kind {
		case "":
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		case "init":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		case "sidecar":
			withSidecar(pod, c.Name)
		case "gate":
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: v1.PodConditionType(spec)})
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	s.facts, s.starts = status.Facts{Pod: pod}, map[string]v1.ContainerStateWaiting{}
	s.observed = runtime.PodStatus{UID: pod.UID}
	return nil
}

// A container is name, name:Policy, or name:Policy(code=Action) with one rule.
var spec = regexp.MustCompile(`^([\w-]+)(?::(\w+)(?:\((\d+)=(\w+)\))?)?$`)

func containerOf(text string) (v1.Container, error) {
	m := spec.FindStringSubmatch(text)
	if m == nil {
		return v1.Container{}, fmt.Errorf("unknown container form %q", text)
	}
	c := v1.Container{Name: m[1], Image: "img/" + m[1]}
	if m[2] != "" {
		c.RestartPolicy = new(v1.ContainerRestartPolicy(m[2]))
	}
	if m[3] != "" {
		code, err := strconv.ParseInt(m[3], 10, 32)
		if err != nil {
			return c, err
		}
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action: v1.ContainerRestartRuleAction(m[4]),
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
				Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{int32(code)},
			},
		}}
	}
	return c, nil
}

func (s *scenario) take(what, sign, value, detail, message string) error {
	switch {
	case what == "sandbox":
		return s.sandbox(value)
	case what == "end" && value == "terminal":
		s.facts.Termination.Terminal = true
	case what == "end" && value == "failed":
		s.facts.Termination.Failed, s.facts.Termination.Reason, s.facts.Termination.Message = true, detail, message
	case what == "end" && value == "disrupted":
		s.facts.Termination.Disruption = "The node was low on resource: memory."
	case what == "delete" && sign == "":
		s.facts.Pod.DeletionTimestamp = new(metav1.NewTime(s.now))
	case what == "finish" && sign == "":
		s.finish = true
	case what == "agent-restart" && sign == "": // only the status at the source is left
		s.facts.Pod.Status, s.facts.Previous, s.finish = s.facts.Previous, v1.PodStatus{}, false
	case what == "gate":
		s.facts.Pod.Status.Conditions = append(s.facts.Pod.Status.Conditions, v1.PodCondition{Type: v1.PodConditionType(value), Status: v1.ConditionTrue})
	case sign == "!":
		s.starts[what] = v1.ContainerStateWaiting{Reason: value}
	case value == "gone":
		s.observed.Containers = slices.DeleteFunc(s.observed.Containers, func(c runtime.ContainerStatus) bool { return c.Name == what })
	default:
		return s.container(what, value, detail, message)
	}
	return nil
}

func (s *scenario) sandbox(state string) error {
	switch {
	case state == "new":
		for i := range s.observed.Sandboxes {
			s.observed.Sandboxes[i].State = runtime.SandboxNotReady
		}
		n := uint32(len(s.observed.Sandboxes))
		s.observed.Sandboxes = slices.Insert(s.observed.Sandboxes, 0, runtime.SandboxStatus{ID: fmt.Sprint("x://sandbox-", n), Attempt: n})
	case len(s.observed.Sandboxes) == 0:
		return errors.New("there is no sandbox yet")
	case state != "ready" && state != "stopped":
		return fmt.Errorf("unknown sandbox state %q", state)
	}
	sb := &s.observed.Sandboxes[0]
	sb.State, s.observed.IPs = runtime.SandboxReady, []string{"10.0.0.7"}
	if state == "stopped" {
		sb.State, s.observed.IPs = runtime.SandboxNotReady, nil
	}
	return nil
}

func (s *scenario) container(name, state, code, reason string) error {
	states := map[string]runtime.ContainerState{
		"created": runtime.ContainerCreated, "running": runtime.ContainerRunning,
		"unknown": runtime.ContainerUnknown, "exited": runtime.ContainerExited,
	}
	known, ok := states[state]
	if !ok {
		return fmt.Errorf("%s: unknown state %q", name, state)
	}
	if len(s.observed.Sandboxes) == 0 {
		return errors.New("there is no sandbox yet")
	}
	delete(s.starts, name)
	c := s.observed.Container(name)
	if c == nil || c.State == runtime.ContainerExited && state != "exited" {
		s.made++
		n := int32(0)
		if c != nil {
			n = c.RestartCount + 1
		}
		s.observed.Containers = slices.Insert(s.observed.Containers, 0, runtime.ContainerStatus{
			ID: fmt.Sprintf("x://%d", s.made), Name: name, SandboxID: s.observed.Sandboxes[0].ID, RestartCount: n, CreatedAt: s.now, StartedAt: s.now,
		})
		c = &s.observed.Containers[0]
	}
	c.State = known
	if known != runtime.ContainerExited {
		return nil
	}
	n, err := strconv.ParseInt(code, 10, 32)
	if err != nil {
		return fmt.Errorf("%s exited with %q, which is no code", name, code)
	}
	c.ExitCode, c.FinishedAt, c.Reason = int32(n), s.now, cmp.Or(reason, "Error")
	if n == 0 && reason == "" {
		c.Reason = "Completed"
	}
	return nil
}

// describeAll formats a status on one line: phase, containers, the conditions that are
// not True.
func describeAll(s *v1.PodStatus) string {
	var b strings.Builder
	b.WriteString(string(s.Phase))
	if s.Reason != "" {
		fmt.Fprintf(&b, "(%s)", strings.TrimSuffix(s.Reason+": "+s.Message, ": "))
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		fmt.Fprintf(&b, "; %s %s", c.Name, strings.ReplaceAll(strings.ReplaceAll(brief(c), " last=-", ""), " restarts=0", ""))
		if c.Ready {
			b.WriteString(" ready")
		}
	}
	var not []string
	for _, c := range s.Conditions {
		if c.Type == v1.DisruptionTarget {
			fmt.Fprintf(&b, "; %s:%s", c.Type, c.Reason)
		} else if c.Status != v1.ConditionTrue {
			not = append(not, strings.TrimSuffix(string(c.Type)+":"+c.Reason, ":"))
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(&b, "; not %s", strings.Join(not, " "))
	}
	return b.String()
}
