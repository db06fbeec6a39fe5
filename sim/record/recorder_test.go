package record_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/sim/record"
)

// recorded calls do with a Recorder, and returns the files of the recording.
func recorded(t testing.TB, cfg record.Config, do func(*record.Recorder)) []string {
	t.Helper()
	r, err := record.New(cfg)
	require.NoError(t, err)
	do(r)
	run(t, r)
	files, err := record.Files(cfg.Dir)
	require.NoError(t, err)
	return files
}

// run writes the notifications of a Recorder.
func run(t testing.TB, r *record.Recorder) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
}

// deliver runs a source until it has delivered its pods once.
func deliver(t testing.TB, source podsource.PodSource) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, source.Run(ctx, func([]*v1.Pod) { cancel() }))
}

// read returns the frames of files.
func read(t testing.TB, files ...string) (all []record.Frame) {
	t.Helper()
	for f, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func TestInvalidConfigurations(t *testing.T) {
	for want, cfg := range map[string]record.Config{
		"record: Config.Dir is empty":              {},
		"record: a limit is negative":              {Dir: "x", MaxBytes: -1},
		"record: Config.Configuration is not JSON": {Dir: "x", Configuration: []byte("{")},
	} {
		_, err := record.New(cfg)
		assert.EqualError(t, err, want)
	}
}

// The second file begins with the complete sets, so that it is readable without the first one.
func TestFilesAreRotatedByAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, err := record.New(record.Config{Dir: dir, MaxAge: time.Hour, MaxFiles: 2})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		source := new(podsource.Memory)
		source.Set(pod("a"), pod("b"))
		go r.Source("api", source).Run(ctx, func([]*v1.Pod) {})
		synctest.Wait()
		source.Set(pod("b"), pod("c"))
		synctest.Wait()
		for range 3 {
			time.Sleep(time.Hour)
			r.Draw("hour", 1)
			synctest.Wait()
		}
		cancel()
		require.NoError(t, <-ended)
	})
	files, err := record.Files(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "the oldest were removed")
	for i, last := range []bool{false, true} {
		all := read(t, files[i])
		require.Len(t, all, 4)
		assert.Equal(t, 3+i, all[0].Header.File)
		assert.Equal(t, time.Duration(2+i)*time.Hour, all[0].At)
		assert.Equal(t, all[0].Header.Start.Add(all[0].At), all[0].Header.Wall)
		assert.True(t, all[1].Pods.Complete)
		assert.Equal(t, "b c", all[1].Pods.Changed[0].Name+" "+all[1].Pods.Changed[1].Name)
		assert.Equal(t, "hour", all[2].Draw.Name)
		assert.Equal(t, !last, all[3].End.Rotated)
	}
}

func TestFilesAreRotatedBySize(t *testing.T) {
	const limit = 1000
	files := recorded(t, record.Config{Dir: t.TempDir(), MaxBytes: limit, MaxFiles: 100}, func(r *record.Recorder) {
		for i := range 300 {
			r.Draw("n", float64(i))
		}
	})
	require.Greater(t, len(files), 3)
	var values []float64
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(limit+100), "one frame and the end more than the limit")
		assert.EqualValues(t, 0o600, info.Mode().Perm())
	}
	for _, f := range read(t, files...) {
		if f.Draw != nil {
			values = append(values, f.Draw.Value)
		}
	}
	require.Len(t, values, 300)
	assert.IsIncreasing(t, values)
}

func TestSetsAreRecordedAsDifferences(t *testing.T) {
	changed := pod("a")
	changed.Labels = map[string]string{"changed": "true"}
	all := read(t, recorded(t, record.Config{Dir: t.TempDir()}, func(r *record.Recorder) {
		source := r.Source("api", podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
			set([]*v1.Pod{pod("a"), pod("b")})
			set([]*v1.Pod{pod("b"), changed})
			set([]*v1.Pod{changed})
			set([]*v1.Pod{changed})
			set(nil)
			return nil
		}))
		require.NoError(t, source.Run(t.Context(), func([]*v1.Pod) {}))
	})...)
	var got []string
	for _, f := range all[1:6] {
		s := ""
		for _, p := range f.Pods.Changed {
			s += "+" + p.Name
		}
		for _, uid := range f.Pods.Removed {
			s += "-" + string(uid)
		}
		got = append(got, s)
	}
	assert.Equal(t, []string{"+a+b", "+a", "-b", "", "-a"}, got)
}

// A full queue drops notifications, and the number is recorded where they are missing.
func TestAFullQueueDrops(t *testing.T) {
	all := read(t, recorded(t, record.Config{Dir: t.TempDir(), QueueBytes: 1000}, func(r *record.Recorder) {
		for i := range 100 {
			r.Draw("n", float64(i))
		}
	})...)
	draws, dropped := 0, 0
	for _, f := range all {
		if f.Draw != nil {
			assert.Zero(t, dropped, "those after the full queue are dropped")
			draws++
		}
		if f.Dropped != nil {
			assert.Equal(t, "queue full", f.Dropped.Reason)
			dropped += f.Dropped.Count
		}
	}
	assert.Positive(t, draws)
	assert.Equal(t, 100, draws+dropped)
}

// While no file can be written, notifications are dropped. The next attempt starts another file,
// which is complete.
func TestAFailureIsRetried(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		r, err := record.New(record.Config{Dir: dir})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		deliver(t, r.Source("api", podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
			set([]*v1.Pod{pod("a")})
			return nil
		})))
		r.Draw("lost", 1)
		synctest.Wait()
		require.NoError(t, os.Remove(dir))
		time.Sleep(time.Minute)
		r.Draw("written", 2)
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
	})
	files, err := record.Files(dir)
	require.NoError(t, err)
	all := read(t, files...)
	require.Len(t, all, 5)
	assert.Equal(t, "a", all[1].Pods.Changed[0].Name)
	assert.Equal(t, &record.Dropped{Count: 2, Reason: "write failed"}, all[2].Dropped)
	assert.Equal(t, "written", all[3].Draw.Name)
}

// A frame that cannot be written is left out, and those after it are written.
func TestAFrameThatCannotBeWrittenIsDropped(t *testing.T) {
	all := read(t, recorded(t, record.Config{Dir: t.TempDir()}, func(r *record.Recorder) {
		r.Draw("none", math.NaN())
		large := pod("large")
		large.Labels = map[string]string{"large": strings.Repeat("<", 17<<20)}
		require.NoError(t, r.Source("api", podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
			set([]*v1.Pod{large})
			return nil
		})).Run(t.Context(), func([]*v1.Pod) {}))
		r.Draw("later", 1)
	})...)
	require.Len(t, all, 5)
	assert.Contains(t, all[1].Dropped.Reason, "frame not encodable: ")
	assert.Equal(t, &record.Dropped{Count: 1, Reason: "frame too large"}, all[2].Dropped)
	assert.Equal(t, "later", all[3].Draw.Name)
}

func TestARecorderRunsOnceAndDiscardsLaterNotifications(t *testing.T) {
	r, err := record.New(record.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	run(t, r)
	r.Draw("later", 1)
	assert.EqualError(t, r.Run(t.Context()), "record: Recorder.Run was called before")
}

func TestAnUnwritableDirectoryIsReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	r, err := record.New(record.Config{Dir: dir})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = r.Run(ctx)
	require.Error(t, err)
	assert.False(t, errors.Is(err, context.Canceled), fmt.Sprint(err))
}
