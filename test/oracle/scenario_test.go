package oracle

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
)

func TestScenariosAreParsedAndPrinted(t *testing.T) {
	const text = `0s add web policy=Never grace=5 init:i=exit=0@1s main:c=started=3s hook:c=20s clean:c
2s fault PullImage kind=slow for=8s delay=6s
3s attach web/debug does=exit=0@1s
4s kill calls=3 when=after down=2s
5s remove web/debug
`
	s, err := ParseScenario("# a comment\n\n" + text)
	require.NoError(t, err)
	assert.Equal(t, text, s.String())
	assert.Equal(t, 1, s.Pods())
	assert.Equal(t, 10*time.Second, s.End())
	assert.Equal(t, []string{"PullImage slow", "kill 3"}, s.faultNames())

	pod := s[0].pod()
	assert.Equal(t, []string{"hook", "20s"}, pod.Spec.Containers[0].Lifecycle.PostStart.Exec.Command)
	assert.Equal(t, []string{probeCommand, "Startup"}, pod.Spec.Containers[0].StartupProbe.Exec.Command)
	assert.Equal(t, nodeName, pod.Spec.NodeName)
}

func TestScenariosAreChecked(t *testing.T) {
	for line, want := range map[string]string{
		"0s add web":                              "has no containers",
		"0s add web main:c=run hook:d=1s":         `no container "d"`,
		"0s add web main:c=run hook:c=x":          `"hook:c=x": time: invalid duration`,
		"0s add web main:c=run clean:c clean:c":   "once",
		"0s add web static main:c=run":            "not supported",
		"0s delete web clean:c":                   "describes an added pod",
		"0s evict web":                            "not an action",
		"0s fault api kind=sick for=1s":           "not supported",
		"0s fault api kind=stale delay=1s for=1s": "only lists",
		"attach web/d does=run":                   "time",
	} {
		_, err := ParseScenario("# first\n" + line)
		assert.ErrorContains(t, err, "line 2", line)
		assert.ErrorContains(t, err, want, line)
	}
}

// The text of what has been parsed is parsed as the same.
func FuzzParseScenario(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(draw(seed, drawOptions{pods: 3, duration: 10 * time.Second}).String())
	}
	f.Add("0s add web main:c=run hook:c=1s clean:c\n1s attach web/d does=run")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScenario(text)
		if err != nil {
			return
		}
		again, err := ParseScenario(s.String())
		require.NoError(t, err, "%q", s.String())
		assert.Equal(t, s.String(), again.String())
	})
}

func TestDrawnScenariosAreValidAndRepeatable(t *testing.T) {
	o := drawOptions{pods: 20, duration: 30 * time.Second}
	withFaults := 0
	for seed := range uint64(200) {
		s := draw(seed, o)
		parsed, err := ParseScenario(s.String())
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, s.String(), parsed.String())
		require.Equal(t, s.String(), draw(seed, o).String())
		assert.Equal(t, 20, s.Pods())
		assert.LessOrEqual(t, s[len(s)-1].At, o.duration)
		if len(s.faultNames()) > 0 {
			withFaults++
		}
	}
	assert.InDelta(t, 120, withFaults, 30, "six in ten")
}

// The scenarios of docs/oracle.md are short, and say what they are about.
func TestTheScenariosAreShort(t *testing.T) {
	files, err := filepath.Glob("scenarios/*.txt")
	require.NoError(t, err)
	assert.NotEmpty(t, files)
	doc, err := os.ReadFile("../../docs/oracle.md")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = ParseScenario(string(text))
		assert.NoError(t, err, file)
		assert.True(t, strings.HasPrefix(string(text), "# "), file)
		assert.LessOrEqual(t, strings.Count(string(text), "\n"), 40, file)
		assert.Contains(t, string(doc), filepath.Base(file))
	}
}

func TestShrinkFindsTheStepsThatMatter(t *testing.T) {
	s := draw(3, drawOptions{pods: 30, duration: 30 * time.Second})
	s = append(s, mustParse(t, "40s add bad policy=Never init:i=exit=0@1s,reason=OOMKilled main:c=ready=2s main:d=run hook:d=1s", "41s crash bad", "41s kill down=1s")...)
	plays := 0
	tries := func(candidates []Scenario) int {
		for i, c := range candidates {
			plays++
			text := c.String()
			if strings.Contains(text, "init:i=exit=0@1s,reason=OOMKilled") && strings.Contains(text, "kill down=1s") {
				return i
			}
		}
		return -1
	}
	assert.Equal(t, "40s add bad policy=Never init:i=exit=0@1s,reason=OOMKilled main:d=run\n41s kill down=1s\n", shrink(s, "bad", tries).String())
	assert.Less(t, plays, 40, "a play takes minutes")
	assert.Equal(t, "40s add bad policy=Never init:i=exit=0@1s,reason=OOMKilled main:d=run\n41s kill down=1s\n", shrink(s, "", tries).String(), "without the name of a pod")

	for _, c := range simpler(mustParse(t, "0s add web side:s=run main:c=run hook:c=1s")) {
		assert.Contains(t, c.String(), "main:c=run", "a pod has a regular container")
	}

	never := func([]Scenario) int { return -1 }
	assert.Equal(t, s.String(), shrink(s, "bad", never).String())
}

func mustParse(t *testing.T, lines ...string) Scenario {
	s, err := ParseScenario(strings.Join(lines, "\n"))
	require.NoError(t, err)
	return s
}

func TestTheTimelineShowsTheViolation(t *testing.T) {
	p := newTape(t)
	planted["succeeded-means-success"](p)
	run := &Recording{Kubelet: "v1", Records: p.records}
	violations, err := check(run)
	require.NoError(t, err)
	require.Len(t, violations, 1)
	var text strings.Builder
	for _, line := range timeline(run, violations) {
		text.WriteString(line.text + "\n")
	}
	for _, want := range []string{"step     add web", "runtime  web/c #0 a: running", "exited 0 , stopped", "status   web: Succeeded", "VIOLATED web: succeeded-means-success: c was stopped because of its probe"} {
		assert.Contains(t, text.String(), want)
	}

	drawing := drawSVG(run, violations)
	assert.Contains(t, drawing, "succeeded-means-success")
	assert.Contains(t, drawing, "web/c")
	for d := xml.NewDecoder(strings.NewReader(drawing)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

func TestTheSummaryCountsViolationsOfEachKubelet(t *testing.T) {
	text := summary([]Result{
		{Kubelet: "a", Pods: 3, Records: 5, Violations: []Violation{{Invariant: "x"}, {Invariant: "x"}}},
		{Kubelet: "b", Pods: 4, Records: 6, Stalled: true},
		{Err: "failed"},
	})
	assert.Contains(t, text, "| a | 1 | 3 | 5 | 0s | 0 | 0 |\n| b | 1 | 4 | 6 | 0s | 1 | 0 |\n| not played | 0 | 0 | 0 | 0s | 0 | 1 |\n")
	assert.Contains(t, text, "| x | 2 | 0 | 0 |\n")
}

func TestRecordingsAreSavedAndLoaded(t *testing.T) {
	p := newTape(t)
	planted["one-live-instance"](p)
	for _, name := range []string{"run.json", "run.json.gz"} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, saveRecording(file, &Recording{Records: p.records}))
		run, err := loadRecording(file)
		require.NoError(t, err)
		violations, err := check(run)
		require.NoError(t, err)
		assert.Contains(t, names(violations), "one-live-instance", name)
	}
}

func TestStepsOfSimAreThoseOfTheOracle(t *testing.T) {
	for _, inv := range checkedBySim() {
		assert.Contains(t, simInvariants, inv.Name)
	}
	assert.Len(t, checkedBySim(), len(simInvariants), "each name is an invariant of package sim")
	assert.NotEmpty(t, sim.Invariants())
}
