package logrotate_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// A fake is a runtime of one container, whose log is a file.
type fake struct {
	path string

	mu     sync.Mutex
	state  runtime.ContainerState
	f      *os.File
	opened int
	looked int // how often Pods was asked
	fail   error
}

func newFake(t *testing.T) *fake {
	f := &fake{path: filepath.Join(t.TempDir(), "0.log"), state: runtime.ContainerRunning}
	require.NoError(t, f.ReopenLog(t.Context(), "c"))
	t.Cleanup(func() { _ = f.f.Close() })
	return f
}

func (f *fake) Pods(context.Context) ([]*runtime.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked++
	return []*runtime.Pod{{Containers: []runtime.Container{{ID: "c", State: f.state}}}}, nil
}

func (f *fake) LogPath(context.Context, string) (string, error) { return f.path, nil }

func (f *fake) ReopenLog(context.Context, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if f.f != nil {
		_ = f.f.Close()
	}
	f.f = file
	f.opened++
	return nil
}

// looks waits for n more inspections of the log.
func (f *fake) looks(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.looked
	}
	before := count()
	require.Eventually(t, func() bool { return count() >= before+n }, 90*time.Second, time.Millisecond)
}

func (f *fake) write(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.f.WriteString(text)
}

// files returns the log's files without the directory, sorted.
func (f *fake) files(t *testing.T) (names []string) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// text returns the contents of the log's files, in order.
func (f *fake) text(t *testing.T) string {
	names := f.files(t)
	slices.SortFunc(names, func(a, b string) int { // the live one last
		return strings.Compare(strings.TrimSuffix(a, ".gz")+strings.Repeat("~", b2i(a == "0.log")), strings.TrimSuffix(b, ".gz")+strings.Repeat("~", b2i(b == "0.log")))
	})
	names = append(slices.DeleteFunc(names, func(n string) bool { return n == "0.log" }), "0.log")
	var all strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(f.path), name))
		require.NoError(t, err)
		if strings.HasSuffix(name, ".gz") {
			zip, err := gzip.NewReader(bytes.NewReader(data))
			require.NoError(t, err)
			data, err = io.ReadAll(zip)
			require.NoError(t, err)
		}
		all.Write(data)
	}
	return all.String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestInvalidConfigs(t *testing.T) { // lg-2
	for want, cfg := range map[string]logrotate.Config{
		"logrotate: Config.Runtime is nil":                               {},
		"logrotate: invalid MaxFiles 1, must be > 1":                     {Runtime: new(fake), MaxFiles: 1},
		"logrotate: invalid MaxFiles -1, must be > 1":                    {Runtime: new(fake), MaxFiles: -1},
		"logrotate: invalid Workers -1, Period 0s or CPUShare 0.5":       {Runtime: new(fake), Workers: -1},
		"logrotate: invalid Workers 0, Period 0s or CPUShare 2":          {Runtime: new(fake), CPUShare: 2},
		"logrotate: invalid Workers 0, Period -1ns or CPUShare 0.5":      {Runtime: new(fake), Period: -1},
		"logrotate: invalid Workers 0, Period 0s or CPUShare -0.1000001": {Runtime: new(fake), CPUShare: -0.1000001},
	} {
		_, err := logrotate.New(cfg)
		assert.EqualError(t, err, want)
	}
}

func TestALogThatIsFullIsRotated(t *testing.T) { // lg-1, lg-5, lg-6, lg-7
	f := newFake(t)
	var rotations []logrotate.Rotation
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 10, MaxFiles: 4, Rotated: func(r logrotate.Rotation) { rotations = append(rotations, r) }})
	require.NoError(t, err)
	f.write("123456789")
	require.NoError(t, r.Pass(t.Context()))
	assert.Equal(t, []string{"0.log"}, f.files(t), "the log is below its maximum size")
	f.write("0")
	require.NoError(t, r.Pass(t.Context()))
	files := f.files(t)
	require.Len(t, files, 2)
	assert.Regexp(t, regexp.MustCompile(`^0\.log\.\d{8}-\d{6}$`), files[1], "the newest is not compressed")
	assert.Equal(t, []logrotate.Rotation{{ContainerID: "c", Path: f.path, To: filepath.Join(filepath.Dir(f.path), files[1]), Size: 10}}, rotations)
	for i := range 5 { // several in a second: none takes another's place
		f.write(fmt.Sprintf("%d.........", i))
		require.NoError(t, r.Pass(t.Context()))
	}
	files = f.files(t)
	require.Len(t, files, 4, "the live file and three others")
	assert.Equal(t, []bool{false, true, true, false}, []bool{
		strings.HasSuffix(files[0], ".gz"), strings.HasSuffix(files[1], ".gz"), strings.HasSuffix(files[2], ".gz"), strings.HasSuffix(files[3], ".gz"),
	})
	assert.Equal(t, "2.........3.........4.........", f.text(t), "the oldest was removed")
	f.write("live")
	assert.Equal(t, "2.........3.........4.........live", f.text(t))
}

func TestLeftoversOfAnInterruptedCompressionGo(t *testing.T) { // lg-5
	f := newFake(t)
	dir := filepath.Dir(f.path)
	for name, text := range map[string]string{
		"0.log.20200101-000000": "twin", "0.log.20200101-000000.gz": "zip", "0.log.20200101-000001.tmp": "half", "0.log.odd": "a person's",
		"1.log.20200101-000000": "another's",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1})
	require.NoError(t, err)
	f.write("full")
	require.NoError(t, r.Pass(t.Context()))
	files := strings.Join(f.files(t), " ")
	assert.NotContains(t, files, ".tmp")
	assert.NotContains(t, files, "0.log.20200101-000000 ")
	assert.Contains(t, files, "0.log.20200101-000000.gz")
	assert.Contains(t, files, "1.log.20200101-000000")
}

func TestALogThatCannotBeReopenedKeepsItsName(t *testing.T) { // lg-6
	f := newFake(t)
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1})
	require.NoError(t, err)
	f.write("full")
	f.fail = errors.New("boom")
	assert.EqualError(t, r.Pass(t.Context()), "logrotate: log of container c: reopen log: boom")
	assert.Equal(t, []string{"0.log"}, f.files(t))
	f.fail = nil
	require.NoError(t, r.Pass(t.Context()))
	assert.Len(t, f.files(t), 2)
}

func TestARuntimeThatDoesNotReopenLogsKeepsThem(t *testing.T) {
	f := newFake(t)
	var out bytes.Buffer
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	f.write("full")
	f.fail = runtime.ErrUnsupported
	for range 3 {
		require.NoError(t, r.Pass(t.Context()))
	}
	assert.Equal(t, []string{"0.log"}, f.files(t))
	assert.Equal(t, 1, strings.Count(out.String(), "Runtime does not reopen logs; logs are not rotated"))
}

func TestLogsThatAreInspected(t *testing.T) { // lg-2, lg-3, lg-4
	f := newFake(t)
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1})
	require.NoError(t, err)
	f.write("full")
	f.state = runtime.ContainerExited
	require.NoError(t, r.Pass(t.Context()))
	assert.Equal(t, []string{"0.log"}, f.files(t), "it does not run")
	f.state = runtime.ContainerRunning
	off, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: -1})
	require.NoError(t, err)
	require.NoError(t, off.Pass(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, off.Run(ctx))
	assert.Equal(t, []string{"0.log"}, f.files(t), "rotation is disabled")

	require.NoError(t, os.Remove(f.path))
	require.NoError(t, r.Pass(t.Context()))
	assert.Equal(t, []string{"0.log"}, f.files(t), "a missing log is created again")
	assert.Equal(t, 2, f.opened)
}

func TestCleanRemovesALogAndAllThatWasRotated(t *testing.T) { // lg-8
	dir := t.TempDir()
	for _, name := range []string{"0.log", "0.log.20200101-000000", "0.log.20200101-000000.gz", "0.logs", "1.log", "10.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, logrotate.Clean(filepath.Join(dir, "0.log")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"0.logs", "1.log", "10.log"}, names)
	assert.NoError(t, logrotate.Clean(filepath.Join(dir, "none", "0.log")))
}

// A log that was idle for a while is rotated soon after it is written to again, and no
// line is lost.
func TestRunRotatesAGrowingLog(t *testing.T) { // lg-7
	f := newFake(t)
	rotated := make(chan logrotate.Rotation, 1000)
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 100_000, MaxFiles: 100, CPUShare: 1, Rotated: func(r logrotate.Rotation) { rotated <- r }})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(300 * time.Millisecond) // by then it listens; if not, it looks
	var want strings.Builder
	line := strings.Repeat("x", 990)
	for n := 0; n < 1000 || len(rotated) < 2; n++ { // a megabyte, and more if it is late
		require.Less(t, n, 200_000)
		text := fmt.Sprintf("%08d %s\n", n, line)
		want.WriteString(text)
		f.write(text)
		if n%10 == 0 {
			time.Sleep(5 * time.Millisecond) // 2 MB/s
		}
	}
	stop()
	require.NoError(t, <-ended)
	assert.Equal(t, want.String(), f.text(t), "each line once, in order")
}

func TestRunTriesAgain(t *testing.T) {
	f := newFake(t)
	rotated := make(chan logrotate.Rotation, 1000)
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 10, Period: 50 * time.Millisecond, Rotated: func(r logrotate.Rotation) { rotated <- r }})
	require.NoError(t, err)
	f.fail = errors.New("not now")
	f.write("0123456789")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(200 * time.Millisecond)
	assert.Empty(t, rotated)
	f.mu.Lock()
	f.fail = nil
	f.mu.Unlock()
	<-rotated
	require.NoError(t, os.Remove(f.path))
	require.Eventually(t, func() bool { _, err := os.Stat(f.path); return err == nil }, 90*time.Second, 10*time.Millisecond, "lg-4")
	f.mu.Lock()
	f.state = runtime.ContainerExited
	f.mu.Unlock()
	f.looks(t, 2) // the second has not begun before the container ended
	f.write("0123456789")
	f.looks(t, 2)
	assert.Empty(t, rotated, "it does not run any more")
	stop()
	require.NoError(t, <-ended)
}

// An ending is a runtime whose ReopenLog fails; if ends is set, the container exits.
type ending struct {
	*fake
	ends bool
}

func (e ending) ReopenLog(context.Context, string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ends {
		e.state = runtime.ContainerExited
	}
	return errors.New("container is not running")
}

func TestAnExitDuringARotationIsLoggedForDebugging(t *testing.T) {
	for ends, level := range map[bool]string{true: "level=DEBUG", false: "level=WARN"} {
		f := newFake(t)
		require.NoError(t, os.Remove(f.path))
		logReader, logWriter := io.Pipe()
		r, err := logrotate.New(logrotate.Config{
			Runtime: ending{f, ends}, MaxSize: 10, Logger: slog.New(slog.NewTextHandler(logWriter, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		line, err := bufio.NewReader(logReader).ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, level)
		_ = logReader.Close()
		stop()
		require.NoError(t, <-ended)
	}
}

// An exiting is a runtime whose container exits, and loses its log, when it has been listed.
type exiting struct{ *fake }

func (e exiting) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	pods, err := e.fake.Pods(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = runtime.ContainerExited
	_ = os.Remove(e.path)
	return pods, err
}

func TestTheLogOfATerminatedContainerIsNotReopened(t *testing.T) { // lg-4
	f := newFake(t)
	r, err := logrotate.New(logrotate.Config{Runtime: exiting{f}, MaxSize: 10, Period: 50 * time.Millisecond})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	f.looks(t, 4)
	stop()
	require.NoError(t, <-ended)
	assert.Equal(t, 1, f.opened)
	assert.Empty(t, f.files(t))
}

// BenchmarkOvershoot measures by how much logs exceed their maximum size before they are
// rotated, with a writer of 50 MB/s.
func BenchmarkOvershoot(b *testing.B) {
	f := &fake{path: filepath.Join(b.TempDir(), "0.log"), state: runtime.ContainerRunning}
	require.NoError(b, f.ReopenLog(b.Context(), "c"))
	const size = 10 << 20
	var mu sync.Mutex
	var over []float64
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: size, Rotated: func(r logrotate.Rotation) {
		mu.Lock()
		defer mu.Unlock()
		info, err := os.Stat(r.To) // all that went into it before it was reopened
		if err == nil {
			over = append(over, float64(info.Size()-size)/size*100)
		}
	}})
	require.NoError(b, err)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(500 * time.Millisecond)
	buf := strings.Repeat("x", 64<<10)
	for b.Loop() { // a second of writing
		began := time.Now()
		for n := 0; n < 50<<20; n += len(buf) {
			f.write(buf)
			if ahead := time.Duration(n)*time.Second/(50<<20) - time.Since(began); ahead > time.Millisecond {
				time.Sleep(ahead)
			}
		}
	}
	stop()
	<-ended
	slices.Sort(over)
	b.ReportMetric(float64(len(over)), "rotations")
	if len(over) > 0 {
		b.ReportMetric(over[len(over)/2], "%median")
		b.ReportMetric(over[len(over)-1], "%worst")
	}
}
