//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/runtime"
)

// StreamExec runs a command as ExecSync does, connected to the streams, and returns
// its exit code. When ctx is done the command is killed. With a terminal, the
// variable TERM is xterm unless the container's environment sets it.
//
// Processes that the command leaves in another session may continue to write until
// there is no output for 200 ms; then the output is closed.
func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (int32, error) {
	p := &plumbing{streams: s, done: make(chan struct{})}
	defer p.close()
	connect := p.pipes
	if s.TTY {
		connect = p.terminal
	}
	code, err := r.exec(ctx, containerID, cmd, connect, p.started)
	p.ended.Store(true)
	for _, out := range p.outputs {
		_ = out.SetReadDeadline(time.Now()) // unblocks readers
	}
	p.receiving.Wait()
	return int32(code), err
}

// plumbing connects a command to streams. It copies itself because package exec
// would wait for the end of the input, and truncate output that is read slowly.
type plumbing struct {
	streams   runtime.Streams
	theirs    []*os.File // the command's ends, closed here once it has them
	ours      []*os.File
	outputs   []*os.File // those of ours that are read
	begin     []func()   // what to do when the command has started
	receiving sync.WaitGroup
	ended     atomic.Bool   // the command has
	done      chan struct{} // closed at the end of all
}

func (p *plumbing) pipes(command *exec.Cmd) error {
	if p.streams.Stdin != nil {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs, p.ours = append(p.theirs, theirs), append(p.ours, ours)
		command.Stdin = theirs
		p.begin = append(p.begin, func() { go p.send(ours) })
	}
	for _, out := range []struct {
		to  io.Writer
		end *io.Writer
	}{{p.streams.Stdout, &command.Stdout}, {p.streams.Stderr, &command.Stderr}} {
		if out.to == nil {
			continue
		}
		ours, theirs, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs, p.ours, p.outputs = append(p.theirs, theirs), append(p.ours, ours), append(p.outputs, ours)
		*out.end = theirs
		p.begin = append(p.begin, func() { p.receiving.Go(func() { p.receive(out.to, ours) }) })
	}
	return nil
}

func (p *plumbing) terminal(command *exec.Cmd) error {
	ours, theirs, err := pty.Open()
	if err != nil {
		return err
	}
	p.theirs, p.ours, p.outputs = append(p.theirs, theirs), append(p.ours, ours), append(p.outputs, ours)
	// Creation may have set it to blocking mode, in which deadlines are ignored.
	if err := control(ours, func(fd int) error { return unix.SetNonblock(fd, true) }); err != nil {
		return err
	}
	command.Stdin, command.Stdout, command.Stderr = theirs, theirs, theirs
	command.SysProcAttr.Setctty = true // descriptor 0
	if !slices.ContainsFunc(command.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }) {
		command.Env = append(command.Env, "TERM=xterm")
	}
	out := p.streams.Stdout
	if out == nil {
		out = io.Discard
	}
	p.begin = append(p.begin, func() {
		p.receiving.Go(func() { p.receive(out, ours) })
		if p.streams.Stdin != nil {
			go p.sendTyped(ours)
		}
		if p.streams.Resize != nil {
			go p.resize(ours)
		}
	})
	return nil
}

// started is called when the command has its ends, or its start failed.
func (p *plumbing) started() {
	for _, f := range p.theirs {
		f.Close()
	}
	p.theirs = nil
	for _, f := range p.begin {
		f()
	}
}

func (p *plumbing) close() {
	close(p.done)
	for _, f := range append(p.theirs, p.ours...) {
		f.Close()
	}
}

// send copies the input and closes the command's input at its end.
func (p *plumbing) send(to *os.File) {
	_, _ = io.Copy(to, struct{ io.Reader }{p.streams.Stdin}) // a command need not read
	to.Close()
}

// sendTyped copies the input of a terminal and ends it with ^D.
func (p *plumbing) sendTyped(to *os.File) {
	const endOfTransmission = 4
	if _, err := io.Copy(to, struct{ io.Reader }{p.streams.Stdin}); err == nil {
		_, _ = to.Write([]byte{endOfTransmission})
	}
}

func (p *plumbing) resize(terminal *os.File) {
	for {
		select {
		case size, ok := <-p.streams.Resize:
			if !ok || control(terminal, func(fd int) error {
				return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Width, Row: size.Height})
			}) != nil {
				return
			}
		case <-p.done:
			return
		}
	}
}

// control calls a function with the descriptor of a file that may be closed
// concurrently.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// receive copies output until all writers have closed it, or the command has
// exited and there was no output for a while. Output that cannot be written is
// discarded.
func (p *plumbing) receive(to io.Writer, from *os.File) {
	buf := make([]byte, 32<<10)
	for {
		ending := p.ended.Load()
		if ending {
			_ = from.SetReadDeadline(time.Now().Add(waitDelay))
		}
		n, err := from.Read(buf)
		if n > 0 && to != nil {
			if _, err := to.Write(buf[:n]); err != nil {
				to = nil
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !ending {
			continue // unblocked because the command has exited
		}
		if err != nil {
			return // also the EIO of a closed terminal
		}
	}
}
