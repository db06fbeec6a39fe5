package status_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

var update = flag.Bool("update", false, "rewrite the results in testdata/*.txt")

// TestScenarios replays testdata/*.txt. A line says what is known, in words:
//
//	pod Always init=setup sidecar=log main      the pod; comes first
//	main=running main=exited(3) main=unknown    the instance of a container; a
//	                                            new one where the last had exited
//	main=gone                                   all its instances were removed
//	main!CrashLoopBackOff                       why it is not started; holds till the next change of it
//	sandbox=ready|stopped|new                   "new" is ready, one attempt later
//	end=terminal end=failed(Evicted) delete finish agent-restart
//
// Each step is a second later than the one before. Below it, after "=", comes
// the status; -update rewrites that.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var got strings.Builder
			s := scenario{t: t, now: t0}
			for line := range strings.Lines(strings.ReplaceAll(string(text), "\r\n", "\n")) {
				if strings.HasPrefix(line, "=") {
					continue
				}
				got.WriteString(line)
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					fmt.Fprintf(&got, "= %s\n", s.step(strings.Fields(line)))
				}
			}
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
				return
			}
			assert.Equal(t, strings.ReplaceAll(string(text), "\r\n", "\n"), got.String())
		})
	}
}

// A scenario is the world of one file.
type scenario struct {
	t        *testing.T
	now      time.Time
	facts    status.Facts
	observed runtime.PodStatus
	starts   map[string]runtime.Waiting
	finish   bool
	made     int // containers, for their IDs
}

var word = regexp.MustCompile(`^([\w-]+)(?:([=!])(\w+)(?:\((\w+)\))?)?$`)

// step takes in one line and returns the status it leads to.
func (s *scenario) step(words []string) string {
	s.now = s.now.Add(time.Second)
	if words[0] == "pod" {
		s.begin(words[1], words[2:])
		words = nil
	}
	for _, w := range words {
		m := word.FindStringSubmatch(w)
		require.NotNil(s.t, m, "what is %q?", w)
		s.take(m[1], m[2], m[3], m[4])
	}
	s.facts.Observed, s.facts.Starts, s.facts.Now = &s.observed, s.starts, s.now
	st := status.Compute(s.facts)
	if s.finish {
		st = status.Terminate(s.facts.Pod, s.facts.Previous, s.now)
	}
	s.facts.Previous = st
	return describeAll(&st)
}

func (s *scenario) begin(policy string, containers []string) {
	pod := podOf(v1.RestartPolicy(policy))
	for _, c := range containers {
		switch name, is, _ := strings.Cut(c, "="); {
		case is == "":
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name})
		case name == "init":
			withInit(pod, is)
		case name == "sidecar":
			withSidecar(pod, is)
		case name == "gate":
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: v1.PodConditionType(is)})
		default:
			require.Fail(s.t, "what is this?", c)
		}
	}
	s.facts, s.starts = status.Facts{Pod: pod}, map[string]runtime.Waiting{}
	s.observed = runtime.PodStatus{UID: pod.UID}
}

func (s *scenario) take(what, sign, value, detail string) {
	switch {
	case what == "sandbox":
		s.sandbox(value)
	case what == "end":
		s.facts.Ending.Terminal = s.facts.Ending.Terminal || value == "terminal"
		if value == "failed" {
			s.facts.Ending.Failed, s.facts.Ending.Reason = true, detail
		}
	case what == "delete":
		s.facts.Pod.DeletionTimestamp = new(metav1.NewTime(s.now))
	case what == "finish":
		s.finish = true
	case what == "agent-restart": // all that is left is what the source kept
		s.facts.Pod.Status, s.facts.Previous, s.finish = s.facts.Previous, v1.PodStatus{}, false
	case what == "gate":
		s.facts.Pod.Status.Conditions = append(s.facts.Pod.Status.Conditions, v1.PodCondition{Type: v1.PodConditionType(value), Status: v1.ConditionTrue})
	case sign == "!":
		s.starts[what] = runtime.Waiting{Reason: value}
	case value == "gone":
		s.observed.Containers = slices.DeleteFunc(s.observed.Containers, func(c runtime.ContainerStatus) bool { return c.Name == what })
	default:
		s.container(what, value, detail)
	}
}

func (s *scenario) sandbox(state string) {
	if state == "new" {
		for i := range s.observed.Sandboxes {
			s.observed.Sandboxes[i].State = runtime.SandboxNotReady
		}
		n := uint32(len(s.observed.Sandboxes))
		s.observed.Sandboxes = slices.Insert(s.observed.Sandboxes, 0, runtime.SandboxStatus{ID: fmt.Sprint("x://sandbox-", n), Attempt: n})
		state = "ready"
	}
	sb := &s.observed.Sandboxes[0]
	sb.State, s.observed.IPs = runtime.SandboxNotReady, nil
	if state == "ready" {
		sb.State, s.observed.IPs = runtime.SandboxReady, []string{"10.0.0.7"}
	}
}

func (s *scenario) container(name, state, code string) {
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
	switch state {
	case "created":
		c.State = runtime.ContainerCreated
	case "running":
		c.State = runtime.ContainerRunning
	case "unknown":
		c.State = runtime.ContainerUnknown
	case "exited":
		n, err := strconv.Atoi(code)
		require.NoError(s.t, err)
		c.State, c.ExitCode, c.FinishedAt = runtime.ContainerExited, int32(n), s.now
		if c.Reason = "Error"; n == 0 {
			c.Reason = "Completed"
		}
	default:
		require.Fail(s.t, "what state is this?", state)
	}
}

// describeAll writes a status on one line: phase, containers, the conditions
// that are not True.
func describeAll(s *v1.PodStatus) string {
	var b strings.Builder
	b.WriteString(string(s.Phase))
	if s.Reason != "" {
		fmt.Fprintf(&b, "(%s)", s.Reason)
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		fmt.Fprintf(&b, "; %s %s", c.Name, strings.ReplaceAll(strings.ReplaceAll(brief(c), " last=-", ""), " restarts=0", ""))
		if c.Ready {
			b.WriteString(" ready")
		}
	}
	var not []string
	for _, c := range s.Conditions {
		if c.Status != v1.ConditionTrue {
			not = append(not, strings.TrimSuffix(string(c.Type)+":"+c.Reason, ":"))
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(&b, "; not %s", strings.Join(not, " "))
	}
	return b.String()
}
