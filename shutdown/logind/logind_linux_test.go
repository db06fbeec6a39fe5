package logind_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/shutdown/logind"
)

const (
	patience = 90 * time.Second
	manager  = "org.freedesktop.login1.Manager"
)

// newBus starts a dbus-daemon, and returns its address and a function that stops it.
func newBus(t *testing.T) (address string, end func()) {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		if os.Getenv("KUBEPARTS_CI") == "1" {
			t.Fatal("KUBEPARTS_CI=1 forbids to skip, and this machine lacks dbus-daemon: apt-get install dbus-daemon")
		}
		t.Skip("there is no dbus-daemon here: apt-get install dbus-daemon")
	}
	dir, err := os.MkdirTemp("", "bus") // a short path for the socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	conf := filepath.Join(dir, "bus.conf")
	require.NoError(t, os.WriteFile(conf, []byte(`<busconfig><type>session</type><listen>unix:tmpdir=`+dir+`</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600))
	cmd := exec.Command("dbus-daemon", "--config-file="+conf, "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(end)
	address, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address), end
}

// A login is a fake logind: it has a property, hands out locks, and reads its
// configuration.
type login struct {
	t       *testing.T
	conn    *dbus.Conn
	props   *prop.Properties
	confDir string
	deaf    bool // it ignores reloads

	mu    sync.Mutex // guards the fields below
	locks []*os.File // they can be read to their end when all others are closed:
	mine  []*os.File // the ends handed out
	asked []string
	kills []string
}

func newLogin(t *testing.T, address string, delayMax time.Duration, preparing bool) *login {
	t.Helper()
	conn, err := dbus.Connect(address)
	require.NoError(t, err)
	l := &login{t: t, conn: conn, confDir: filepath.Join(t.TempDir(), "logind.conf.d")}
	t.Cleanup(l.end)
	require.NoError(t, conn.Export(l, "/org/freedesktop/login1", manager))
	require.NoError(t, conn.Export(units{l}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	l.props, err = prop.Export(conn, "/org/freedesktop/login1", prop.Map{manager: {
		"InhibitDelayMaxUSec":  {Value: uint64(delayMax.Microseconds())},
		"PreparingForShutdown": {Value: preparing},
	}})
	require.NoError(t, err)
	for _, name := range []string{"org.freedesktop.login1", "org.freedesktop.systemd1"} {
		_, err := conn.RequestName(name, dbus.NameFlagReplaceExisting|dbus.NameFlagAllowReplacement)
		require.NoError(t, err)
	}
	return l
}

func (l *login) end() {
	_ = l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range append(l.locks, l.mine...) {
		_ = f.Close()
	}
}

// Inhibit implements the method of login1.
func (l *login) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.asked = append(l.asked, strings.Join([]string{what, who, why, mode}, "|"))
	l.locks, l.mine = append(l.locks, r), append(l.mine, w)
	return dbus.UnixFD(w.Fd()), nil
}

// units implements the methods of systemd.
type units struct{ *login }

func (u units) KillUnit(unit, who string, signal int32) *dbus.Error {
	l := u.login
	l.mu.Lock()
	l.kills = append(l.kills, fmt.Sprint(unit, " ", who, " ", signal))
	l.mu.Unlock()
	text, err := os.ReadFile(filepath.Join(l.confDir, "99-kubelet.conf"))
	if err != nil {
		return dbus.MakeFailedError(err)
	}
	_, value, _ := strings.Cut(string(text), "[Login]\nInhibitDelayMaxSec=")
	var seconds uint64
	if _, err := fmt.Sscanf(value, "%d\n", &seconds); err != nil {
		return dbus.MakeFailedError(err)
	}
	if !l.deaf {
		time.AfterFunc(100*time.Millisecond, func() { l.props.SetMust(manager, "InhibitDelayMaxUSec", seconds*1e6) })
	}
	return nil
}

// prepare announces that the machine is about to stop, or cancels that.
func (l *login) prepare(is bool) {
	l.props.SetMust(manager, "PreparingForShutdown", is)
	require.NoError(l.t, l.conn.Emit("/org/freedesktop/login1", manager+".PrepareForShutdown", is))
}

// inhibited reports whether the client still has the lock with this number.
func (l *login) inhibited(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.locks) {
		return false
	}
	_ = l.mine[n].Close()
	pipe, err := l.locks[n].SyscallConn()
	require.NoError(l.t, err)
	var held error
	require.NoError(l.t, pipe.Read(func(fd uintptr) bool {
		_, held = syscall.Read(int(fd), make([]byte, 1))
		return true
	}))
	return errors.Is(held, syscall.EAGAIN) // an unheld lock is at EOF
}

func (l *login) calls() (asked, kills []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(asked, l.asked...), append(kills, l.kills...)
}

// A watch is a running trigger.
type watch struct {
	t       *testing.T
	notices chan shutdown.Notice
	stop    func()
	done    chan error
}

func newWatch(t *testing.T, address, confDir string, need time.Duration) *watch {
	t.Helper()
	trigger, err := logind.New(logind.Config{Address: address, ConfDir: confDir, ReloadTimeout: time.Second})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	w := &watch{t: t, notices: make(chan shutdown.Notice), stop: stop, done: make(chan error, 1)}
	go func() {
		w.done <- trigger.Watch(ctx, need, func(n shutdown.Notice) {
			select {
			case w.notices <- n:
			case <-ctx.Done():
			}
		})
		close(w.done)
	}()
	t.Cleanup(func() {
		stop()
		for range w.done {
		}
	})
	return w
}

// next is the trigger's next notice.
func (w *watch) next() shutdown.Notice {
	w.t.Helper()
	select {
	case n := <-w.notices:
		return n
	case err := <-w.done:
		w.t.Fatal("the watch has ended:", err)
	case <-time.After(patience):
		w.t.Fatal("no notice")
	}
	return shutdown.Notice{}
}

// failed is the error that it returned.
func (w *watch) failed() error {
	w.t.Helper()
	select {
	case err := <-w.done:
		return err
	case n := <-w.notices:
		w.t.Fatal("unexpected notice", n)
	case <-time.After(patience):
		w.t.Fatal("the watch has not ended")
	}
	return nil
}
