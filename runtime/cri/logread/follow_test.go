package logread_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// A container is a runtime of one container, which writes numbered lines.
type container struct {
	t    *testing.T
	path string

	// mu guards the fields below.
	mu      sync.Mutex
	file    *os.File
	lines   int
	stopped bool
}

func newContainer(t *testing.T) *container {
	c := &container{t: t, path: filepath.Join(t.TempDir(), "0.log")}
	require.NoError(t, c.ReopenLog(t.Context(), ""))
	t.Cleanup(func() { _ = c.file.Close() })
	return c
}

func (c *container) Pods(context.Context) ([]*runtime.Pod, error) {
	return []*runtime.Pod{{Containers: []runtime.Container{{ID: "c", State: runtime.ContainerRunning}}}}, nil
}

func (c *container) LogPath(context.Context, string) (string, error) { return c.path, nil }

func (c *container) ReopenLog(context.Context, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err == nil {
		_ = c.file.Close()
		c.file = file
	}
	return err
}

// write writes n more lines.
func (c *container) write(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.file.Write(entries(c.lines, c.lines+n))
	assert.NoError(c.t, err)
	c.lines += n
}

func (c *container) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *container) running(context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stopped, nil
}

// rotator returns a rotator that rotates every log that is not empty.
func (c *container) rotator(files int) *logrotate.Rotator {
	r, err := logrotate.New(logrotate.Config{Runtime: c, MaxSize: 1, MaxFiles: files})
	require.NoError(c.t, err)
	return r
}

// brief is quiet with short intervals.
var brief = logread.Config{Watch: quiet.Watch, Recheck: 15 * time.Millisecond, Settle: 4 * time.Millisecond}

// An output collects the output of a client. It can be slow.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	gate chan struct{} // nil: it is fast; otherwise it takes as much as it gets from it
}

func (o *output) Write(b []byte) (int, error) {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// print appends text that does not come from the log.
func (o *output) print(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.WriteString(s)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// has waits until the output equals want.
func (o *output) has(t *testing.T, want string) {
	t.Helper()
	for range 9_000 { // 90 seconds, true or virtual ones
		o.mu.Lock()
		same := o.buf.Len() == len(want) && o.buf.String() == want
		o.mu.Unlock()
		if same {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Equal(t, want, o.String())
}

// follow follows the log until the test stops the container.
func (c *container) follow(cfg logread.Config, req logread.Request, o io.Writer) (ended <-chan error) {
	r, err := logread.New(cfg)
	require.NoError(c.t, err)
	req.Path, req.Follow = c.path, true
	if req.Running == nil {
		req.Running = c.running
	}
	done := make(chan error, 1)
	go func() { done <- r.Read(c.t.Context(), req, o) }()
	return done
}

// followFromEnd is follow; it returns when the follow has reached the end of the log.
func (c *container) followFromEnd(o io.Writer) <-chan error {
	asked := make(chan struct{})
	var once sync.Once
	ended := c.follow(quiet, logread.Request{Tail: new(int64(0)), Running: func(ctx context.Context) (bool, error) {
		once.Do(func() { close(asked) })
		return c.running(ctx)
	}}, o)
	<-asked
	return ended
}

func ends(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(90 * time.Second):
		require.Fail(t, "it does not end")
	}
	return nil
}

// quiet disables notifications of the file system, which do not follow virtual time.
var quiet = logread.Config{Watch: func(string, func()) (func(), error) { return nil, errors.New("there are no more of them") }}

func TestAFollowReadsUntilTheContainerEnds(t *testing.T) { // la-12
	c, o := newContainer(t), new(output)
	c.write(3)
	ended := c.follow(logread.Config{Recheck: 100 * time.Millisecond}, logread.Request{Tail: new(int64(1))}, o)
	o.has(t, numbered(2, 3))
	c.write(2)
	o.has(t, numbered(2, 5))
	c.stop()
	require.NoError(t, ends(t, ended))
}

func TestAFollowWithoutAWatchPolls(t *testing.T) { // la-12
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		ended := c.follow(quiet, logread.Request{}, o)
		c.write(2)
		o.has(t, numbered(0, 2))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestAFollowStartsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(3)
		ended := c.followFromEnd(o)
		c.write(2)
		o.has(t, numbered(3, 5))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestALineIsFollowedWhenItIsComplete(t *testing.T) { // la-13
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(1)
		_, err := c.file.WriteString("2026-11-21T10:00:00.1Z stdout F hel")
		require.NoError(t, err)
		ended := c.followFromEnd(o)
		_, err = c.file.WriteString("lo\n2026-11-21T10:00:00.1Z stdout F wor")
		require.NoError(t, err)
		o.has(t, "hello\n")
		c.stop()
		require.NoError(t, ends(t, ended))
		assert.Equal(t, "hello\nwor", o.String(), "the last line is incomplete")
	})
}

func TestAFollowEndsWithItsClient(t *testing.T) { // la-12
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(1)
		r, err := logread.New(quiet)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Read(ctx, logread.Request{Path: c.path, Follow: true}, o) }()
		o.has(t, numbered(0, 1))
		cancel()
		assert.ErrorIs(t, ends(t, done), context.Canceled)
	})
}

func TestAFollowEndsWithAnErrorOfTheRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(1)
		broken := errors.New("broken")
		ended := c.follow(quiet, logread.Request{Running: func(context.Context) (bool, error) { return false, broken }}, o)
		assert.ErrorIs(t, ends(t, ended), broken)
		assert.Equal(t, numbered(0, 1), o.String())
	})
}

func TestAFollowEndsAtItsLimit(t *testing.T) { // la-9
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		ended := c.follow(quiet, logread.Request{Limit: new(int64(10))}, o)
		c.write(3)
		require.NoError(t, ends(t, ended))
		assert.Equal(t, "line 0\nlin", o.String())
	})
}

// No line is lost or read twice while the files are rotated and compressed.
func TestAFollowAcrossAHundredRotations(t *testing.T) {
	for name, c := range map[string]struct {
		files int
		slow  bool
	}{
		"a client that keeps up":                {files: 5},
		"a client that is behind all rotations": {files: 200, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctr, o := newContainer(t), new(output)
				if c.slow {
					o.gate = make(chan struct{})
				}
				ended := ctr.follow(brief, logread.Request{Gap: func(err error) { assert.NoError(t, err) }}, o)
				rotator := ctr.rotator(c.files)
				for range 100 {
					ctr.write(5)
					if !c.slow { // otherwise files might be gone before they are read
						o.has(t, numbered(0, ctr.lines))
					}
					ctr.write(5)
					require.NoError(t, rotator.Pass(t.Context()))
				}
				ctr.write(5)
				if c.slow {
					close(o.gate)
				}
				o.has(t, numbered(0, 1005))
				ctr.stop()
				require.NoError(t, ends(t, ended))
				assert.Equal(t, numbered(0, 1005), o.String())
			})
		})
	}
}

func TestAFollowAcrossRotationsWhileManyWrite(t *testing.T) {
	c, o := newContainer(t), new(output)
	ended := c.follow(logread.Config{Settle: time.Millisecond}, logread.Request{Gap: func(err error) { assert.NoError(t, err) }}, o)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		rotator := c.rotator(1000)
		for range 100 {
			assert.NoError(t, rotator.Pass(t.Context()))
		}
		close(stop)
	})
	for writing := true; writing; {
		c.write(7)
		select {
		case <-stop:
			writing = false
		case <-time.After(100 * time.Microsecond):
		}
	}
	wg.Wait()
	c.stop()
	require.NoError(t, ends(t, ended))
	assert.True(t, o.String() == numbered(0, c.lines), "%d lines were written", c.lines)
}

// A file that is compressed while or after it is read is not read again.
func TestACompressedFileIsRecognized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), &output{gate: make(chan struct{})}
		c.write(1)
		ended := c.follow(quiet, logread.Request{Gap: func(err error) { assert.NoError(t, err) }}, o)
		rotator := c.rotator(10)
		for range 3 { // the reader has the first file open, whose name changes twice
			c.write(3)
			require.NoError(t, rotator.Pass(t.Context()))
		}
		c.write(2)
		close(o.gate)
		o.has(t, numbered(0, 12))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestFilesThatAreRemovedBeforeTheyAreReadAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), &output{gate: make(chan struct{})}
		c.write(1)
		gaps := make(chan error, 10)
		ended := c.follow(quiet, logread.Request{Gap: func(err error) {
			o.print("something is missing\n")
			gaps <- err
		}}, o)
		for n := range 2 {
			o.gate <- struct{}{}
			o.has(t, numbered(0, n+1))
			c.write(1)
		}
		time.Sleep(10 * time.Second) // it has read a third line, which its client does not take yet
		rotator := c.rotator(2)
		for range 4 {
			require.NoError(t, rotator.Pass(t.Context()))
			c.write(1)
		}
		require.NoError(t, rotator.Pass(t.Context()))
		c.write(1)
		close(o.gate)
		c.stop()
		require.NoError(t, ends(t, ended))
		assert.ErrorIs(t, <-gaps, logread.ErrRemoved)
		assert.Equal(t, numbered(0, 3)+"something is missing\n"+numbered(6, 8), o.String())
	})
}

func TestALogThatGetsItsNameBackIsFollowed(t *testing.T) { // lg-6
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(1)
		ended := c.follow(quiet, logread.Request{}, o)
		o.has(t, numbered(0, 1))
		require.NoError(t, os.Rename(c.path, c.path+".20261121-100000"))
		c.write(1) // the runtime has not opened another
		o.has(t, numbered(0, 2))
		require.NoError(t, os.Rename(c.path+".20261121-100000", c.path))
		c.write(1)
		o.has(t, numbered(0, 3))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestLinesWrittenAfterARotationAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(1)
		ended := c.follow(quiet, logread.Request{}, o)
		o.has(t, numbered(0, 1))
		old := c.file
		c.file = nil
		require.NoError(t, os.Rename(c.path, c.path+".20261121-100000"))
		_, err := old.Write(entries(1, 2))
		require.NoError(t, err)
		require.NoError(t, c.ReopenLog(t.Context(), ""))
		_, err = old.Write(entries(2, 3)) // a runtime may be late
		require.NoError(t, err)
		require.NoError(t, old.Close())
		c.lines = 3
		c.write(1)
		o.has(t, numbered(0, 4))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestATruncatedFileIsReadFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		c.write(2)
		gaps := make(chan error, 10)
		ended := c.follow(quiet, logread.Request{Gap: func(err error) { gaps <- err }}, o)
		o.has(t, numbered(0, 2))
		require.NoError(t, os.Truncate(c.path, 0))
		assert.ErrorIs(t, <-gaps, logread.ErrTruncated)
		c.write(1)
		o.has(t, numbered(0, 3))
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestTheKubeletsFollowGoesFromLiveFileToLiveFile(t *testing.T) { // la-12, la-14
	synctest.Test(t, func(t *testing.T) {
		c, o := newContainer(t), new(output)
		cfg := quiet
		cfg.LiveOnly = true
		ended := c.follow(cfg, logread.Request{}, o)
		rotator := c.rotator(3)
		for i := range 5 {
			c.write(1)
			o.has(t, numbered(0, i+1))
			require.NoError(t, rotator.Pass(t.Context()))
		}
		c.stop()
		require.NoError(t, ends(t, ended))
	})
}

func TestReadingWhileFilesAreRotatedAndCompressed(t *testing.T) {
	c := newContainer(t)
	c.write(1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		rotator := c.rotator(1000)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			c.write(3)
			if i%10 == 0 {
				assert.NoError(t, rotator.Pass(t.Context()))
			}
		}
	}()
	r, err := logread.New(logread.Config{})
	require.NoError(t, err)
	for rounds := 0; rounds < 30; rounds++ {
		c.mu.Lock()
		least := c.lines
		c.mu.Unlock()
		var o bytes.Buffer
		require.NoError(t, r.Read(t.Context(), logread.Request{Path: c.path, Gap: func(err error) { assert.NoError(t, err) }}, &o))
		lines := bytes.Count(o.Bytes(), []byte("\n"))
		require.GreaterOrEqual(t, lines, least)
		require.True(t, o.String() == numbered(0, lines))
		o.Reset()
		require.NoError(t, r.Read(t.Context(), logread.Request{Path: c.path, Tail: new(int64(50))}, &o))
		require.LessOrEqual(t, bytes.Count(o.Bytes(), []byte("\n")), 50)
	}
	close(stop)
	<-stopped
}
