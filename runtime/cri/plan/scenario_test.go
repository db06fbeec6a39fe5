package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata/*.txt")

// TestScenarios runs the scenarios in testdata. A scenario has the lines of a model and of
// the events after it; the plans of plan and sync follow them, indented:
//
//	plan               prints the plan
//	sync               prints the plan and applies it
//	exit web 1         the running instance exits
//	lose web           the runtime loses track of it
//	reboot             all containers have exited, the sandbox is not ready
//	wait 10s           time passes
//	image web nginx:2  the spec changes
//	resize web cpu=2   the container's resources change
//	probe web dead     a result of the running instance: live, dead, started, stuck
//	delete             the pod gets a deletion timestamp
//	agent              the agent is restarted, with an empty back-off table
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			want := strings.ReplaceAll(string(text), "\r\n", "\n")
			got := play(t, want)
			if *update && got != want {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			assert.Equal(t, want, got)
		})
	}
}

// play returns the scenario with the plans that are computed now.
func play(t *testing.T, scenario string) string {
	t.Helper()
	s := newModel(t, "")
	var out strings.Builder
	for line := range strings.Lines(scenario) {
		if strings.HasPrefix(line, "\t") {
			continue // a plan as it was
		}
		out.WriteString(line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "plan" || words[0] == "sync" {
			p := checkPlan(t, s)
			for step := range strings.Lines(p.String()) {
				fmt.Fprintf(&out, "\t%s\n", strings.TrimSuffix(step, "\n"))
			}
			if words[0] == "sync" {
				s.apply(p)
			}
			continue
		}
		require.NoError(t, s.happen(t, words), line)
	}
	return out.String()
}

// happen applies an event to the pod, or adds a line to the model.
func (s *model) happen(t *testing.T, words []string) error {
	switch words[0] {
	case "exit", "lose":
		for i := range s.status.Containers {
			inst := &s.status.Containers[i]
			if inst.Name != words[1] || inst.State != runtime.ContainerRunning {
				continue
			}
			if words[0] == "lose" {
				inst.State = runtime.ContainerUnknown
				return nil
			}
			code, err := strconv.Atoi(words[2])
			s.exit(inst, int32(code))
			return err
		}
		return fmt.Errorf("%s does not run", words[1])
	case "reboot":
		for i := range s.status.Containers {
			s.stop(&s.status.Containers[i])
		}
		for i := range s.status.Sandboxes {
			s.status.Sandboxes[i].State = runtime.SandboxNotReady
		}
	case "wait":
		d, err := time.ParseDuration(words[1])
		s.now = s.now.Add(d)
		return err
	case "image":
		s.spec(words[1]).Image = words[2]
	case "resize":
		opts := make(map[string]string)
		for _, w := range words[2:] {
			k, v, _ := strings.Cut(w, "=")
			opts[k] = v
		}
		s.spec(words[1]).Resources = *modelResources(opts)
	case "probe":
		for i := range s.status.Containers {
			if inst := &s.status.Containers[i]; inst.Name == words[1] && inst.State == runtime.ContainerRunning {
				return s.result(inst.ID, words[2])
			}
		}
		return fmt.Errorf("%s does not run", words[1])
	case "delete":
		s.pod.DeletionTimestamp = new(metav1.NewTime(s.now))
	case "agent":
		s.forget(t)
	default:
		return s.add(words)
	}
	return nil
}
