//go:build linux || darwin

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/crilog"
	"github.com/kubeparts/kubeparts/internal/usernamespace"
)

// The descriptors of a supervisor, after the standard ones.
const (
	fdAlive = 3 // the writing end of the FIFO "alive", open until the exit
	fdWords = 4 // the pipe for messages to the agent
)

// How long a supervisor waits, after the exit of the main process, for killed
// descendants to exit (they can block in the kernel), and for output whose pipe is
// still open.
const (
	killRestTimeout = 2 * time.Second
	drainTimeout    = time.Second
)

// supervise runs a supervisor: it starts the process, copies its output, reaps it
// and its descendants, and records the exit.
//
// It does not need the agent after the start. Recovery depends on the order of its
// writes: process.json before the process is started, the exit after no process of
// the container runs, and the FIFO closed after that.
func supervise(dir stateDir, id string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fdAlive, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return fmt.Errorf("descriptor %d is not a FIFO: supervisors are started by an agent", fdAlive)
	}
	// Not inherited by the container: an open FIFO means a live supervisor.
	unix.CloseOnExec(fdAlive)
	unix.CloseOnExec(fdWords)
	closeInherited()
	words := os.NewFile(fdWords, "words")
	defer words.Close()
	send := func(w supervisorMessage) { json.NewEncoder(words).Encode(w) } // a later agent reads the files
	send(supervisorMessage{Hello: true})

	// Notify, not Ignore: an ignored signal stays ignored in the container.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGPIPE, unix.SIGUSR1)

	rec, err := readRecord[containerRecord](dir.containerFile(id), id)
	if err != nil {
		send(supervisorMessage{Error: err.Error()})
		return err
	}
	me, err := processStart(os.Getpid())
	if err != nil {
		send(supervisorMessage{Error: err.Error()})
		return err
	}
	proc := processRecord{Version: formatVersion, ID: id, Supervisor: identity{PID: os.Getpid(), Start: me}}
	if err := dir.write(dir.container(id), dir.processFile(id), proc); err != nil {
		send(supervisorMessage{Error: err.Error()})
		return err
	}

	// From here on the container counts as started, and each return records an exit.
	started := time.Now()
	fail := func(err error) error {
		exit := newExit(id, codeStartError, 0, started, time.Now())
		exit.Reason, exit.Message = reasonStartError, err.Error()
		werr := dir.write(dir.container(id), dir.exit(id), exit)
		send(supervisorMessage{Error: err.Error()})
		return werr
	}

	log, err := crilog.NewWriter(openLog(rec.Process.LogPath), crilog.Offset{})
	if err != nil {
		return fail(fmt.Errorf("open log: %w", err))
	}
	defer log.Close()

	// The parent-death signal is sent on the exit of the forking thread; a locked
	// thread lives as long as the process.
	goruntime.LockOSThread()
	if err := becomeReaper(rec.Process.NoNewPrivs); err != nil {
		return fail(err)
	}
	p, pipes, err := startProcess(rec.Process)
	if err != nil {
		return fail(err)
	}
	proc.Process.PID = p.Pid
	proc.StartedAt = started.UnixNano()
	if proc.Process.Start, err = processStart(p.Pid); err == nil {
		err = dir.write(dir.container(id), dir.processFile(id), proc)
	}
	if err != nil {
		err = errors.Join(err, p.Kill())
		reapMain(p)
		killRest(p.Pid, time.Now().Add(killRestTimeout))
		return fail(err)
	}

	var pumps sync.WaitGroup
	for i, stream := range []string{crilog.Stdout, crilog.Stderr} {
		pumps.Go(func() {
			if err := log.Copy(stream, pipes[i]); err != nil {
				fmt.Fprintf(os.Stderr, "process: log of %s: %v\n", stream, err)
			}
		})
	}
	go func() {
		for s := range signals {
			switch s {
			case unix.SIGUSR1:
				if _, err := log.Reopen(); err != nil {
					fmt.Fprintf(os.Stderr, "process: reopen log: %v\n", err)
				}
			case unix.SIGTERM, unix.SIGINT, unix.SIGQUIT:
				// A stop of the supervisor is a stop of the container.
				p.Signal(s)
			}
		}
	}()
	send(supervisorMessage{PID: p.Pid})
	words.Close()
	debug.FreeOSMemory() // from here on it only waits

	code, sig := reapMain(p)
	finished := time.Now()
	killRest(p.Pid, finished.Add(killRestTimeout))
	drained := make(chan struct{})
	go func() {
		pumps.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(drainTimeout):
	}
	return dir.write(dir.container(id), dir.exit(id), newExit(id, code, sig, started, finished))
}

// closeInherited closes descriptors that the agent inherited, such as pipes whose
// reader waits for their close, and locks. They are those without close-on-exec,
// which Go sets on its own.
func closeInherited() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= fdWords {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// openLog opens the log of a container. If path is empty, it returns nil.
func openLog(path string) func() (io.WriteCloser, error) {
	if path == "" {
		path = os.DevNull
	}
	return func() (io.WriteCloser, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	}
}

// startProcess starts the main process as the leader of a session and process
// group.
func startProcess(spec processSpec) (*os.Process, [2]*os.File, error) {
	var pipes [2]*os.File
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, pipes, err
	}
	defer null.Close()
	files := []*os.File{null, nil, nil}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, pipes, err
		}
		defer w.Close() // the container's alone: its end is the end of output
		pipes[i], files[1+i] = r, w
	}
	p, err := os.StartProcess(spec.Path, spec.Args, &os.ProcAttr{
		Dir: spec.Dir, Env: spec.environ(), Files: files, Sys: attributes(spec.User),
	})
	if err != nil {
		return nil, pipes, err
	}
	return p, pipes, nil
}

// attributes returns the attributes of the processes of a container, including
// exec'd commands.
func attributes(user *credential) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	dieWithParent(attr)
	if user != nil {
		attr.Credential = &syscall.Credential{
			Uid: user.UID, Gid: user.GID, Groups: user.Groups,
			// Where it is denied, setgroups fails for an empty list as well.
			NoSetGroups: len(user.Groups) == 0 && usernamespace.DeniesSetgroups(os.DirFS("/")),
		}
	}
	return attr
}

// exitOf splits a wait status into code and signal.
func exitOf(ws syscall.WaitStatus) (code, sig int) {
	if ws.Signaled() {
		return 0, int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}
