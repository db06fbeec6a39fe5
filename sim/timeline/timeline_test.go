package timeline_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// epoch is when the timelines of these tests begin.
var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// day has an init container, a crash with back-off, a failed probe, a fault, a restart of the agent, and a termination.
var day = timeline.Timeline{Marks: []timeline.Mark{
	{At: at(0), Pod: "shop/web", Kind: timeline.Phase, Text: "Pending"},
	{At: at(0), Pod: "shop/web", Container: "setup", Kind: timeline.Waiting, Text: "PodInitializing"},
	{At: at(1), Pod: "shop/web", Container: "setup", Kind: timeline.Running},
	{At: at(1), Pod: "shop/web", Container: "app", Kind: timeline.Waiting, Text: "PodInitializing"},
	{At: at(12), Pod: "shop/web", Container: "setup", Kind: timeline.Succeeded, Text: "exit code 0, Completed"},
	{At: at(12), Pod: "shop/web", Kind: timeline.Condition, Text: "Initialized=True"},
	{At: at(13), Pod: "shop/web", Container: "app", Kind: timeline.Running},
	{At: at(13), Pod: "shop/web", Kind: timeline.Phase, Text: "Running"},
	{At: at(20), Pod: "shop/web", Container: "app", Kind: timeline.Ready},
	{At: at(20), Pod: "shop/web", Kind: timeline.PodReady},
	{At: at(45), Pod: "shop/web", Container: "app", Kind: timeline.Exited, Text: "exit code 3, Error"},
	{At: at(45), Pod: "shop/web", Kind: timeline.Unready, Text: "ContainersNotReady"},
	{At: at(45.5), Pod: "shop/web", Container: "app", Kind: timeline.BackOff, Text: "CrashLoopBackOff"},
	{At: at(55), Pod: "shop/web", Container: "app", Kind: timeline.Running, Text: "restart 1"},
	{At: at(58), Kind: timeline.Fault, Text: "PodStatus answers an error"},
	{At: at(62), Kind: timeline.Agent, Text: "killed"},
	{At: at(66), Kind: timeline.Agent, Text: "started"},
	{At: at(70), Pod: "shop/web", Container: "app", Kind: timeline.Ready},
	{At: at(70), Pod: "shop/web", Kind: timeline.PodReady},
	{At: at(80), Pod: "shop/web", Container: "app", Kind: timeline.Probe, Text: "liveness: connection refused"},
	{At: at(85), Pod: "shop/web", Container: "app", Kind: timeline.Note, Text: "an operator inspected it"},
	{At: at(90), Pod: "shop/web", Kind: timeline.Kill, Text: "deletion requested"},
	{At: at(91), Pod: "shop/web", Container: "app", Kind: timeline.Kill, Text: "TERM"},
	{At: at(100), Pod: "shop/web", Container: "app", Kind: timeline.Exited, Text: "exit code 143, Error"},
	{At: at(100), Pod: "shop/web", Kind: timeline.Unready},
	{At: at(101), Pod: "shop/web", Kind: timeline.Phase, Text: "Failed"},
	{At: at(102), Pod: "shop/web", Kind: timeline.Deleted},
	{At: at(30), Pod: "shop/job", Kind: timeline.Phase, Text: "Pending"},
	{At: at(31), Pod: "shop/job", Container: "main", Kind: timeline.Running},
	{At: at(31), Pod: "shop/job", Kind: timeline.Phase, Text: "Running"},
	{At: at(75), Pod: "shop/job", Container: "main", Kind: timeline.Succeeded},
	{At: at(75), Pod: "shop/job", Kind: timeline.Phase, Text: "Succeeded"},
}, Until: at(120)}

// hostile has invalid names and texts.
var hostile = timeline.Timeline{Marks: []timeline.Mark{
	{At: at(0), Pod: `"/><script>alert(1)</script>`, Kind: timeline.Phase, Text: "Pending & <b>bold</b>"},
	{At: at(1), Pod: `"/><script>alert(1)</script>`, Container: "]]>\x1b[31mred\x00\n\u202egnirts", Kind: timeline.Running},
	{At: at(2), Pod: strings.Repeat("very-long-namespace", 20) + "/the-end", Kind: "</title>", Text: "\xff\xfe"},
	{At: at(2), Pod: strings.Repeat("very-long-namespace", 20) + "/the-end", Kind: timeline.Phase, Text: "Running" + strings.Repeat("!", 1000)},
	{At: at(3), Container: "of nobody", Kind: timeline.Waiting, Text: `'"<>&`},
	{At: at(9), Kind: timeline.Note, Text: "line\nbreak"},
}}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

func TestGoldenFiles(t *testing.T) {
	for name, line := range map[string]timeline.Timeline{"day": day, "hostile": hostile, "pod": day.ForPod("shop/job"), "nothing": {}} {
		for kind, text := range map[string]string{
			".txt": written(t, func(w io.Writer) error { return line.WriteChart(w, 100) }) + "\n" + written(t, line.WriteList),
			".svg": written(t, line.WriteSVG),
		} {
			golden := filepath.Join("testdata", name+kind)
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "run the test with -update, and read what it wrote")
			assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), text, golden)
		}
	}
}

func TestAPictureIsWellFormedAndHasOnlyItsOwnElements(t *testing.T) {
	for _, line := range []timeline.Timeline{day, hostile, {}} {
		text := written(t, line.WriteSVG)
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if e, ok := token.(xml.StartElement); ok {
				assert.Contains(t, []string{"svg", "defs", "pattern", "rect", "text", "title", "line", "path", "circle", "g"}, e.Name.Local)
			}
		}
	}
}

func TestAChartHasNoControlCharacters(t *testing.T) {
	text := written(t, func(w io.Writer) error { return hostile.WriteChart(w, 0) }) + written(t, hostile.WriteList)
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\x00")
	assert.NotContains(t, text, "\u202e")
	assert.Len(t, strings.Split(strings.TrimSpace(written(t, hostile.WriteList)), "\n"), len(hostile.Marks))
}

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	failed := errors.New("disk full")
	w := writer(func([]byte) (int, error) { return 0, failed })
	assert.ErrorIs(t, day.WriteSVG(w), failed)
	assert.ErrorIs(t, day.WriteChart(w, 80), failed)
	assert.ErrorIs(t, day.WriteList(w), failed)
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestBoundsCutWhatIsShown(t *testing.T) {
	part := day
	part.From, part.Until = at(46), at(60)
	list := written(t, part.WriteList)
	assert.Len(t, strings.Split(strings.TrimSpace(list), "\n"), 2)
	assert.Contains(t, list, "9s  shop/web app             running: restart 1\n")
	chart := written(t, func(w io.Writer) error { return part.WriteChart(w, 80) })
	assert.Contains(t, chart, "~~~---", "states that began earlier are drawn")
}

func TestOfKeepsTheNodeAndTheBounds(t *testing.T) {
	assert.Equal(t, []string{"shop/web", "shop/job"}, day.Pods())
	job := day.ForPod("shop/job")
	assert.Equal(t, at(0), job.From)
	assert.Equal(t, at(120), job.Until)
	assert.Len(t, job.Marks, 5+3, "faults and agents concern it too")
}

// statuses of a pod as status.Manager would write them.
func running(id string, since time.Time, restarts int32, ready bool) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: "app", ContainerID: id, RestartCount: restarts, Ready: ready,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
	}
}

func TestRecorderDerivesMarksFromStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		after := func(s int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(s) * time.Second)) }
		crash := &v1.ContainerStateTerminated{ContainerID: "1", ExitCode: 3, Reason: "Error", StartedAt: after(2), FinishedAt: after(8)}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
		r := new(timeline.Recorder)
		report := func(second int, phase v1.PodPhase, ready v1.ConditionStatus, c v1.ContainerStatus) {
			time.Sleep(time.Until(after(second).Time))
			c.Name = "app"
			require.NoError(t, r.UpdatePodStatus(t.Context(), pod, v1.PodStatus{
				Phase: phase, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: ready}, {Type: v1.PodInitialized, Status: v1.ConditionTrue}},
				ContainerStatuses: []v1.ContainerStatus{c},
			}))
		}
		report(1, v1.PodPending, v1.ConditionFalse, v1.ContainerStatus{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}})
		report(3, v1.PodRunning, v1.ConditionFalse, running("1", after(2).Time, 0, false))
		report(5, v1.PodRunning, v1.ConditionTrue, running("1", after(2).Time, 0, true))
		report(6, v1.PodRunning, v1.ConditionTrue, running("1", after(2).Time, 0, true)) // nothing new
		report(9, v1.PodRunning, v1.ConditionFalse, v1.ContainerStatus{ContainerID: "1",
			State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: v1.ContainerState{Terminated: crash}})
		again := running("3", after(30).Time, 2, false)
		again.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ContainerID: "2", Reason: "Completed", StartedAt: after(20), FinishedAt: after(21)}
		report(31, v1.PodRunning, v1.ConditionFalse, again)
		time.Sleep(time.Second)
		r.Add(timeline.Mark{Kind: timeline.Fault, Text: "the sink fails"})
		pod.DeletionTimestamp = new(after(40))
		report(40, v1.PodFailed, v1.ConditionFalse, v1.ContainerStatus{ContainerID: "3", RestartCount: 2, State: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ContainerID: "3", ExitCode: 143, Reason: "Error", StartedAt: after(30), FinishedAt: after(39)}}})
		time.Sleep(time.Second)
		require.NoError(t, r.DeletePod(t.Context(), pod))
		time.Sleep(9 * time.Second)

		line := r.Timeline()
		line.From = start
		assert.Equal(t, after(50).Time, line.Until)
		assert.Equal(t, strings.TrimLeft(`
        1s  shop/web                 phase: Pending
        1s  shop/web                 condition: Initialized=True
        1s  shop/web app             waiting: ContainerCreating
        2s  shop/web app             running
        3s  shop/web                 phase: Running
        5s  shop/web                 ready
        5s  shop/web app             ready
        8s  shop/web app             exited: exit code 3, Error
        9s  shop/web                 not ready
        9s  shop/web app             back-off: CrashLoopBackOff
       20s  shop/web app             running
       21s  shop/web app             succeeded: exit code 0, Completed
       30s  shop/web app             running: restart 2
       32s  node                     fault: the sink fails
       39s  shop/web app             exited: exit code 143, Error
       40s  shop/web                 kill: deletion requested
       40s  shop/web                 phase: Failed
       41s  shop/web                 deleted
`, "\n"), written(t, line.WriteList))
	})
}

// A mark without a time lies centuries before the others.
func TestAMarkWithoutATimeIsDrawnToo(t *testing.T) {
	line := timeline.Timeline{Marks: []timeline.Mark{
		{Pod: "a/b", Container: "c", Kind: timeline.Running}, {At: at(0), Pod: "a/b", Container: "c", Kind: timeline.Exited},
	}}
	assert.Less(t, len(written(t, line.WriteSVG)), 10_000)
	assert.Less(t, len(written(t, func(w io.Writer) error { return line.WriteChart(w, 100) })), 2000)
}

func TestVeryManyPodsAreDrawnInTime(t *testing.T) {
	var line timeline.Timeline
	for i := range 50_000 {
		line.Marks = append(line.Marks, timeline.Mark{At: at(float64(i)), Pod: fmt.Sprint("p/", i%5000), Container: "c", Kind: timeline.Running, Text: fmt.Sprint(i)})
	}
	begun := time.Now()
	assert.Len(t, line.Pods(), 5000)
	require.NoError(t, line.WriteSVG(io.Discard))
	assert.Less(t, time.Since(begun), time.Minute)
}
