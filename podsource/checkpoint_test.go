package podsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/podsource"
)

// A logLine is a slog.Handler that is called with the attributes of each record.
type logLine func(attrs map[string]any)

func (logLine) Enabled(context.Context, slog.Level) bool { return true }
func (h logLine) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h logLine) WithGroup(string) slog.Handler          { return h }
func (h logLine) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]any{}
	r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value.Any(); return true })
	h(attrs)
	return nil
}

// remembering returns a Checkpoint of source in dir, and what it logs.
func remembering(t *testing.T, dir string, source podsource.PodSource) (c *podsource.Checkpoint, logged func() []string) {
	var mu sync.Mutex
	var lines []string
	note := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}
	c, err := podsource.NewCheckpoint(podsource.CheckpointConfig{
		Source: source, Path: filepath.Join(dir, "pods.json"),
		Logger: slog.New(logLine(func(attrs map[string]any) {
			if err, failed := attrs["err"].(error); failed {
				note(err.Error())
			} else {
				note(fmt.Sprint("restored ", attrs["pods"]))
			}
		})),
	})
	require.NoError(t, err)
	return c, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// away is a source that never says anything.
var away = podsource.Func(func(ctx context.Context, _ func([]*v1.Pod)) error { <-ctx.Done(); return nil })

func TestAnAgentWhoseSourceIsAwayGoesOnWithWhatItHad(t *testing.T) {
	dir := t.TempDir()
	t.Run("the source speaks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := new(podsource.Memory)
			m.Set(pod("a", image("x:1")), pod("b"))
			c, logged := remembering(t, dir, m)
			s := run(t, c)
			time.Sleep(time.Minute)
			assert.Equal(t, 1, s.count(), "the record is not needed")
			assert.Empty(t, logged())
		})
	})
	t.Run("it is away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := new(podsource.Memory)
			c, logged := remembering(t, dir, m)
			s := run(t, c)
			time.Sleep(9 * time.Second)
			assert.Zero(t, s.count(), "it has time to speak")
			time.Sleep(2 * time.Second)
			assert.Equal(t, []string{"a", "b"}, s.names())
			assert.Equal(t, []string{"restored 2"}, logged())

			m.Set(pod("c")) // it is back, and its word counts alone
			time.Sleep(time.Minute)
			assert.Equal(t, []string{"c"}, s.names())
			assert.Equal(t, 2, s.count())
		})
	})
	t.Run("it has no pods", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := new(podsource.Memory)
			m.Set()
			c, _ := remembering(t, dir, m)
			run(t, c)
			time.Sleep(time.Minute)
		})
		synctest.Test(t, func(t *testing.T) {
			c, logged := remembering(t, dir, away)
			s := run(t, c)
			time.Sleep(time.Minute)
			assert.Equal(t, 1, s.count())
			assert.Empty(t, s.names())
			assert.Equal(t, []string{"restored 0"}, logged())
		})
	})
}

func TestWithoutARecordTheSourceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, logged := remembering(t, t.TempDir(), away)
		s := run(t, c)
		time.Sleep(time.Hour)
		assert.Zero(t, s.count(), "an empty set would end all pods")
		assert.Empty(t, logged())
	})
}

func TestACheckpointThatCannotBeReadOrWrittenIsOnlyLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "pods.json"), `{"checksum":"00000000","data":{}}`)
		c, logged := remembering(t, dir, away)
		s := run(t, c)
		time.Sleep(time.Hour)
		assert.Zero(t, s.count())
		require.Len(t, logged(), 1)
		assert.Contains(t, (logged())[0], filepath.Join(dir, "pods.json"))
	})
	synctest.Test(t, func(t *testing.T) {
		m := new(podsource.Memory)
		m.Set(pod("a"))
		c, logged := remembering(t, filepath.Join(t.TempDir(), "none"), m)
		s := run(t, c)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a"}, s.names(), "the pods run all the same")
		assert.Len(t, logged(), 1)
	})
}

func TestStatusesAloneAreNotWrittenAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := new(podsource.Memory)
		c, _ := remembering(t, dir, m)
		run(t, c)
		writes := 0
		var last os.FileInfo
		look := func() {
			synctest.Wait()
			info, err := os.Stat(filepath.Join(dir, "pods.json"))
			require.NoError(t, err)
			if last == nil || !os.SameFile(last, info) {
				writes++
			}
			last = info
		}
		for i := range 60 {
			p := pod("a")
			p.Status.Message = fmt.Sprint(i)
			m.Set(p)
			look()
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, writes, 7)
		p := pod("a")
		p.Status.Phase = v1.PodSucceeded
		before := writes
		m.Set(p)
		look()
		assert.Equal(t, before+1, writes, "that a pod has ended is recorded at once")
	})
}

func TestManyLargePodsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		pods := make([]*v1.Pod, 170)
		for i := range pods {
			pods[i] = pod(fmt.Sprint("p", i))
			pods[i].Annotations = map[string]string{"a": strings.Repeat("x", 100<<10)}
			pods[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 1000)}}
		}
		m := new(podsource.Memory)
		m.Set(pods...)
		c, logged := remembering(t, dir, m)
		run(t, c)
		time.Sleep(time.Minute)
		assert.Empty(t, logged())
		text, err := os.ReadFile(filepath.Join(dir, "pods.json"))
		require.NoError(t, err)
		assert.Greater(t, len(text), 17_000_000)
		assert.NotContains(t, string(text), "managedFields")
	})
	synctest.Test(t, func(t *testing.T) {
		c, logged := remembering(t, dir, away)
		s := run(t, c)
		time.Sleep(time.Minute)
		assert.Len(t, s.names(), 170)
		assert.Equal(t, []string{"restored 170"}, logged())
	})
}

// FuzzRemembered delivers whatever a record holds, or reports that it cannot be read.
func FuzzRemembered(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","pods":[{"metadata":{"name":"a","namespace":"default","uid":"u"}}]}`))
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","pods":[null,{}]}`))
	f.Add([]byte(`{"pods":null}`))
	f.Add([]byte(`{"pods":[{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e9"}}}]}}]}`))
	f.Add([]byte(`{"pods":{"a":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if !json.Valid(data) || checkpoint.Write(filepath.Join(dir, "pods.json"), json.RawMessage(data)) != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			c, logged := remembering(t, dir, away)
			merge, err := podsource.NewMerge(podsource.MergeConfig{
				Sources: map[string]podsource.PodSource{podsource.APISource: c}, Sink: new(journal),
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- merge.Run(ctx) }()
			time.Sleep(time.Minute)
			assert.Len(t, logged(), 1, "it was restored, or an error was reported")
			cancel()
			assert.NoError(t, <-done)
		})
	})
}

func TestTheEndOfTheSourceIsTheEndOfTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		c, _ := remembering(t, t.TempDir(), podsource.Func(func(context.Context, func([]*v1.Pod)) error { return down }))
		assert.ErrorIs(t, c.Run(t.Context(), func([]*v1.Pod) {}), down, "Merge starts it again")
	})
}

func TestNewCheckpointRefusesABadConfig(t *testing.T) {
	for want, cfg := range map[string]podsource.CheckpointConfig{
		"Source is nil":      {Path: "x"},
		"Path is empty":      {Source: away},
		"StatusEvery is -1s": {Source: away, Path: "x", StatusEvery: -time.Second},
	} {
		_, err := podsource.NewCheckpoint(cfg)
		assert.ErrorContains(t, err, want)
	}
}
