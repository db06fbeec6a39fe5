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
)

// The descriptors a supervisor is given beside its standard ones.
const (
	fdAlive = 3 // the writing end of the FIFO "alive", held until the end
	fdWords = 4 // where words to the agent go
)

// How long a supervisor waits, after the main process has ended, for killed
// descendants to be gone (one can hang in the kernel), and for output that
// somebody still holds the pipe of. An exit is not held back for longer.
const (
	killRestTimeout = 2 * time.Second
	drainTimeout    = time.Second
)

// supervise is the life of a supervisor: start the process, pump its output,
// reap it and all that it leaves behind, and write down how it ended.
//
// It needs nobody after the start. Its order of writes is what recovery
// stands on: process.json before there is a process, the exit after nothing
// of the container runs, the descriptor of the FIFO let go of after that.
func supervise(dir stateDir, id string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fdAlive, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return fmt.Errorf("descriptor %d is no FIFO: a supervisor is started by an agent, not by hand", fdAlive)
	}
	// The container must inherit neither: an open FIFO means a live supervisor.
	unix.CloseOnExec(fdAlive)
	unix.CloseOnExec(fdWords)
	closeInherited()
	words := os.NewFile(fdWords, "words")
	defer words.Close()
	say := func(w word) { json.NewEncoder(words).Encode(w) } // an agent that is gone reads the files
	say(word{Hello: true})

	// Notify, not Ignore: an ignored signal stays ignored in the container.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGPIPE, unix.SIGUSR1)

	rec, err := readRecord[containerRecord](dir.containerFile(id), id)
	if err != nil {
		say(word{Error: err.Error()})
		return err
	}
	me, err := processStart(os.Getpid())
	if err != nil {
		say(word{Error: err.Error()})
		return err
	}
	proc := processRecord{Version: formatVersion, ID: id, Supervisor: identity{PID: os.Getpid(), Start: me}}
	if err := dir.write(dir.container(id), dir.processFile(id), proc); err != nil {
		say(word{Error: err.Error()})
		return err
	}

	// From here on the start is used up, and every way out writes an exit.
	started := time.Now()
	fail := func(err error) error {
		exit := newExit(id, codeStartError, 0, started, time.Now())
		exit.Reason, exit.Message = reasonStartError, err.Error()
		werr := dir.write(dir.container(id), dir.exit(id), exit)
		say(word{Error: err.Error()})
		return werr
	}

	log, err := newLogWriter(openLog(rec.Process.LogPath), time.Now)
	if err != nil {
		return fail(fmt.Errorf("open log: %w", err))
	}
	defer log.Close()

	// The death of the forking thread, not of the process, is what the
	// kernel's parent-death signal tells; a locked one lives to the end.
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
	for i, stream := range []string{"stdout", "stderr"} {
		pumps.Go(func() {
			if err := log.copy(stream, pipes[i]); err != nil {
				fmt.Fprintf(os.Stderr, "process: log of %s: %v\n", stream, err)
			}
		})
	}
	go func() {
		for s := range signals {
			switch s {
			case unix.SIGUSR1:
				if err := log.reopen(); err != nil {
					fmt.Fprintf(os.Stderr, "process: reopen log: %v\n", err)
				}
			case unix.SIGTERM, unix.SIGINT, unix.SIGQUIT:
				// Whoever stops the supervisor means the container.
				p.Signal(s)
			}
		}
	}()
	say(word{PID: p.Pid})
	words.Close()
	debug.FreeOSMemory() // nothing but waiting from here on

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

// closeInherited closes what came through the agent from whoever started it:
// pipes whose other end waits for all writers to go, locks. Such descriptors
// are those not closed on exec, which Go's own are.
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

// openLog opens the log of a container, or nothing if path is empty.
func openLog(path string) func() (io.WriteCloser, error) {
	if path == "" {
		path = os.DevNull
	}
	return func() (io.WriteCloser, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	}
}

// startProcess starts the main process as the leader of a session, and so of
// a process group, of its own.
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

// attributes are those of each process of a container, the exec'd ones too.
func attributes(user *credential) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	dieWithParent(attr)
	if user != nil {
		attr.Credential = &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups}
	}
	return attr
}

// exitOf takes a wait status apart.
func exitOf(ws syscall.WaitStatus) (code, sig int) {
	if ws.Signaled() {
		return 0, int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}
