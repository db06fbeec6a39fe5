package logind

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/shutdown"
)

// What logind is called on the bus.
const (
	service   = "org.freedesktop.login1"
	path      = dbus.ObjectPath("/org/freedesktop/login1")
	manager   = "org.freedesktop.login1.Manager"
	prepare   = "PrepareForShutdown"
	delayMax  = manager + ".InhibitDelayMaxUSec"
	preparing = manager + ".PreparingForShutdown"
)

// ConfFile is the name of the file that makes logind wait longer (sh-4).
const ConfFile = "99-kubelet.conf"

// Config configures a [Trigger].
type Config struct {
	// Address of the bus: unix:path=… Empty: that of the system.
	Address string

	// ConfDir is the directory of the files that change logind's configuration. Empty:
	// /etc/systemd/logind.conf.d.
	ConfDir string

	// Reload is how long logind may take to read its configuration anew. Zero: 5
	// seconds.
	Reload time.Duration

	// Who and Why are what `systemd-inhibit --list` shows of the lock. Empty: kubelet,
	// and "Kubelet needs time to handle node shutdown".
	Who, Why string

	// Logger, nil discards.
	Logger *slog.Logger
}

// A Trigger is a [shutdown.Trigger] by logind.
type Trigger struct{ cfg Config }

var _ shutdown.Trigger = (*Trigger)(nil)

// New returns a Trigger for cfg. It connects to nothing.
func New(cfg Config) (*Trigger, error) {
	if cfg.Reload < 0 {
		return nil, errors.New("logind: Config.Reload is negative")
	}
	if cfg.ConfDir == "" {
		cfg.ConfDir = "/etc/systemd/logind.conf.d"
	}
	if cfg.Reload == 0 {
		cfg.Reload = 5 * time.Second
	}
	if cfg.Who == "" {
		cfg.Who = "kubelet"
	}
	if cfg.Why == "" {
		cfg.Why = "Kubelet needs time to handle node shutdown"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Trigger{cfg}, nil
}

// Watch implements [shutdown.Trigger].
func (t *Trigger) Watch(ctx context.Context, need time.Duration, tell func(shutdown.Notice)) error {
	conn, err := t.connect(ctx)
	if err != nil {
		return fmt.Errorf("logind: connect to the bus: %w", err)
	}
	defer conn.Close()
	login := conn.Object(service, path)
	if err := t.makePatient(ctx, conn, login, need); err != nil {
		return fmt.Errorf("logind: %w", err)
	}
	// What happens from here on is heard of; what happened before is asked for below.
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(path)); err != nil {
		return fmt.Errorf("logind: listen for %s: %w", prepare, err)
	}
	release := func() {} // gives the lock back
	defer func() { release() }()
	stopping, err := get[bool](login, preparing)
	if err != nil {
		return fmt.Errorf("logind: %w", err)
	}
	if !stopping {
		if release, err = t.inhibit(ctx, login); err != nil {
			return fmt.Errorf("logind: %w", err)
		}
	}
	tell(shutdown.Notice{Stopping: stopping})
	for {
		select {
		case <-ctx.Done():
			return nil
		case s, ok := <-signals:
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				if stopping {
					release = func() {} // the shutdown that is under way needs it
				}
				return errors.New("logind: the bus is gone")
			}
			if s.Name != manager+"."+prepare || len(s.Body) != 1 {
				continue
			}
			switch is, _ := s.Body[0].(bool); {
			case is && !stopping:
				stopping = true
				tell(shutdown.Notice{Stopping: true, Release: release})
			case !is && stopping:
				stopping = false
				release()
				release, err = t.inhibit(ctx, login)
				tell(shutdown.Notice{})
				if err != nil {
					return fmt.Errorf("logind: %w", err)
				}
			}
		}
	}
}

// connect opens a connection that ends with ctx.
func (t *Trigger) connect(ctx context.Context) (*dbus.Conn, error) {
	opts := []dbus.ConnOption{dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())}
	if t.cfg.Address == "" {
		return dbus.ConnectSystemBus(opts...)
	}
	return dbus.Connect(t.cfg.Address, opts...)
}

// makePatient has logind wait as long as the node needs (sh-4).
func (t *Trigger) makePatient(ctx context.Context, conn *dbus.Conn, login dbus.BusObject, need time.Duration) error {
	most, err := waits(login)
	if err != nil || most >= need {
		return err
	}
	file := filepath.Join(t.cfg.ConfDir, ConfFile)
	seconds := int64((need + time.Second - 1) / time.Second)
	text := fmt.Sprintf("# Written for the graceful shutdown of a Kubernetes node.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := os.MkdirAll(t.cfg.ConfDir, 0o755); err != nil {
		return err
	}
	if err := checkpoint.Replace(file, []byte(text), 0o644); err != nil {
		return err
	}
	const hangUp = int32(1) // SIGHUP: it reads its configuration anew
	systemd := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", hangUp).Err; err != nil {
		return fmt.Errorf("have logind read %s: %w", file, err)
	}
	late := time.NewTimer(t.cfg.Reload)
	defer late.Stop()
	for {
		switch most, err = waits(login); {
		case err != nil:
			return err
		case most >= need:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("it delays a shutdown by %v at most, the node needs %v, and %s changes nothing; does another file there win over it?", most, need, file)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waits is how long logind delays a shutdown at most.
func waits(login dbus.BusObject) (time.Duration, error) {
	usec, err := get[uint64](login, delayMax)
	return time.Duration(min(usec, 1<<50)) * time.Microsecond, err
}

func get[T any](of dbus.BusObject, property string) (v T, err error) {
	value, err := of.GetProperty(property)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", property, err)
	}
	v, ok := value.Value().(T)
	if !ok {
		return v, fmt.Errorf("%s is a %T", property, value.Value())
	}
	return v, nil
}

// inhibit takes a lock, which is held until release is called, once or more often.
func (t *Trigger) inhibit(ctx context.Context, login dbus.BusObject) (release func(), err error) {
	var fd dbus.UnixFD
	err = login.CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", t.cfg.Who, t.cfg.Why, "delay").Store(&fd)
	if err != nil {
		return func() {}, fmt.Errorf("have the machine wait: %w", err)
	}
	file := os.NewFile(uintptr(fd), "inhibitor")
	return sync.OnceFunc(func() { _ = file.Close() }), nil
}
