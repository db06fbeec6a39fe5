package fakecri_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// logging runs a test with a container web of pod a that prints lines, and with the path
// of its log.
func logging(t *testing.T, b fake.Behavior, test func(n *node, id, path string)) {
	t.Helper()
	dir := t.TempDir()
	cfg := does(b)
	cfg.WriteLogs = true
	on(t, cfg, func(n *node) {
		pod := podConfig("a")
		pod.LogDirectory = filepath.Join(dir, "a")
		sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
		require.NoError(n, err)
		web := containerConfig("a", "web")
		_, err = n.PullImage(n.ctx, web.Image, nil, nil)
		require.NoError(n, err)
		id, err := n.CreateContainer(n.ctx, sandbox, web, pod)
		require.NoError(n, err)
		path := filepath.Join(dir, "a", "web", "0.log")
		assert.NoFileExists(n, path)
		require.NoError(n, n.StartContainer(n.ctx, id))
		assert.FileExists(n, path)
		test(n, id, path)
	})
}

func (n *node) log(path string) []string {
	n.Helper()
	data, err := os.ReadFile(path)
	require.NoError(n, err)
	if len(data) == 0 {
		return nil
	}
	require.True(n, bytes.HasSuffix(data, []byte("\n")))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestLinesAreInTheLogAtTheirTime(t *testing.T) {
	logging(t, fake.Behavior{Logs: []fake.LogLine{
		{Text: "starting"},
		{Text: "warm %d of 2", After: 2 * time.Second, Every: time.Second, Times: 2},
		{Text: "oops", After: 500 * time.Millisecond, Err: true},
		{Text: "tick %d", After: 1500 * time.Millisecond, Every: 10 * time.Second},
	}}, func(n *node, id, path string) {
		// Virtual time begins on 2000-01-01.
		want := []string{
			"2000-01-01T00:00:00.000000000Z stdout F starting",
			"2000-01-01T00:00:02.000000000Z stdout F warm 1 of 2",
			"2000-01-01T00:00:03.000000000Z stdout F warm 2 of 2",
			"2000-01-01T00:00:03.500000000Z stderr F oops",
			"2000-01-01T00:00:05.000000000Z stdout F tick 1",
			"2000-01-01T00:00:15.000000000Z stdout F tick 2",
			"2000-01-01T00:00:25.000000000Z stdout F tick 3",
		}
		at := func(seconds float64, lines int) {
			n.Helper()
			time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))))
			assert.Equal(n, want[:lines], n.log(path))
		}
		at(0.1, 1)
		at(1.9, 1)
		at(2.1, 2)
		at(3.1, 3)
		at(3.6, 4)
		at(5.1, 5)
		at(25.1, 7)
		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		at(100, 7)
	})
}

func TestALinePrintedAtTheExitIsInTheLog(t *testing.T) {
	logging(t, fake.Behavior{Exit: &fake.Exit{After: 2 * time.Second}, Logs: []fake.LogLine{{Text: "%d", Every: time.Second}}}, func(n *node, id, path string) {
		time.Sleep(time.Minute)
		assert.Len(n, n.log(path), 3, "at 0, 1 and 2 seconds")
	})
}

func TestALongLineIsInSeveralEntries(t *testing.T) {
	text := strings.Repeat("x", 16<<10)
	logging(t, fake.Behavior{Logs: []fake.LogLine{{Text: text}, {Text: text + text + "y"}, {}}}, func(n *node, id, path string) {
		synctest.Wait()
		var entries []string
		for _, line := range n.log(path) {
			entries = append(entries, strings.TrimPrefix(line, "2000-01-01T00:00:00.000000000Z stdout "))
		}
		assert.Equal(n, []string{"F " + text, "P " + text, "P " + text, "F y", "F "}, entries)
	})
}

func TestALogThatWasMovedGoesOnInANewFile(t *testing.T) {
	logging(t, fake.Behavior{Logs: []fake.LogLine{{Text: "%d", Every: time.Second}}}, func(n *node, id, path string) {
		time.Sleep(1500 * time.Millisecond)
		require.NoError(n, os.Rename(path, path+".old"))
		time.Sleep(3 * time.Second)
		assert.NoFileExists(n, path, "the file is not created before it is reopened")
		require.NoError(n, n.ReopenContainerLog(n.ctx, id))
		assert.Len(n, n.log(path), 3, "no line is lost")
		time.Sleep(2 * time.Second)
		assert.Equal(n, []string{
			"2000-01-01T00:00:02.000000000Z stdout F 3", "2000-01-01T00:00:03.000000000Z stdout F 4", "2000-01-01T00:00:04.000000000Z stdout F 5",
			"2000-01-01T00:00:05.000000000Z stdout F 6", "2000-01-01T00:00:06.000000000Z stdout F 7",
		}, n.log(path))
		assert.Len(n, n.log(path+".old"), 2)

		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		require.NoError(n, os.Rename(path, path+".2"))
		hasCode(n, codes.Unknown, n.ReopenContainerLog(n.ctx, id))
		assert.NoFileExists(n, path)
	})
}

func TestALogThatCannotBeReopenedIsAnError(t *testing.T) {
	logging(t, fake.Behavior{}, func(n *node, id, path string) {
		require.NoError(n, os.RemoveAll(filepath.Dir(path)))
		hasCode(n, codes.Unknown, n.ReopenContainerLog(n.ctx, id))
		assert.NoFileExists(n, path)
	})
}

func TestALogThatCannotBeCreatedIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var reported bytes.Buffer
	cfg := does(fake.Behavior{Logs: []fake.LogLine{{Text: "x"}}})
	cfg.WriteLogs, cfg.Logger = true, slog.New(slog.NewTextHandler(&reported, nil))
	on(t, cfg, func(n *node) {
		pod := podConfig("a")
		pod.LogDirectory = file
		sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
		require.NoError(n, err)
		web := containerConfig("a", "web")
		_, err = n.PullImage(n.ctx, web.Image, nil, nil)
		require.NoError(n, err)
		id, err := n.CreateContainer(n.ctx, sandbox, web, pod)
		require.NoError(n, err)
		require.NoError(n, n.StartContainer(n.ctx, id))
		n.runs(id)
		assert.Contains(n, reported.String(), "Failed to create container log")
	})
}

func TestWithoutWriteLogsNoFileIsTouched(t *testing.T) {
	dir := t.TempDir()
	on(t, does(fake.Behavior{Logs: []fake.LogLine{{Text: "x", Every: time.Second}}}), func(n *node) {
		pod := podConfig("a")
		pod.LogDirectory = dir
		sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
		require.NoError(n, err)
		id := n.created(sandbox, "a", "web", 0)
		require.NoError(n, n.StartContainer(n.ctx, id))
		time.Sleep(time.Minute)
		require.NoError(n, n.ReopenContainerLog(n.ctx, id))
		entries, err := os.ReadDir(dir)
		require.NoError(n, err)
		assert.Empty(n, entries)
	})
}

func TestALogWaitsForTheNextLineOnly(t *testing.T) {
	// Waiting for a line needs neither a goroutine nor an open file per container.
	dir := t.TempDir()
	cfg := does(fake.Behavior{Logs: []fake.LogLine{{Text: "x"}, {Text: "y", After: time.Hour}}})
	cfg.WriteLogs = true
	on(t, cfg, func(n *node) {
		_, err := n.PullImage(n.ctx, containerConfig("", "").Image, nil, nil)
		require.NoError(n, err)
		for i := range 3000 {
			pod := podConfig(strconv.Itoa(i))
			pod.LogDirectory = dir
			sandbox, err := n.RunPodSandbox(n.ctx, pod, "")
			require.NoError(n, err)
			id, err := n.CreateContainer(n.ctx, sandbox, containerConfig("a", "web"), pod)
			require.NoError(n, err)
			require.NoError(n, n.StartContainer(n.ctx, id))
		}
		assert.Len(n, n.log(filepath.Join(dir, "web", "0.log")), 3000)
		time.Sleep(2 * time.Hour)
		assert.Len(n, n.log(filepath.Join(dir, "web", "0.log")), 6000)
	})
}
