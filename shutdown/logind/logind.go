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

// The D-Bus names of logind.
const (
	service   = "org.freedesktop.login1"
	path      = dbus.ObjectPath("/org/freedesktop/login1")
	manager   = "org.freedesktop.login1.Manager"
	prepare   = "PrepareForShutdown"
	delayMax  = manager + ".InhibitDelayMaxUSec"
	preparing = manager + ".PreparingForShutdown"
)

// confFile is the name of the kubelet's file that raises the maximum delay.
const confFile = "99-kubelet.conf"

// Config configures a [Trigger].
type Config struct {
	// Address of the bus, as unix:path=…. If empty, the system bus is used.
	Address string

	// ConfDir is the directory of logind's drop-in configuration files. If empty,
	// /etc/systemd/logind.conf.d is used.
	ConfDir string

	// ReloadTimeout is how long logind may take to reload its configuration. Zero means 5
	// seconds.
	ReloadTimeout time.Duration

	// Who and Why identify the lock in `systemd-inhibit --list`. If empty, they are
	// "kubelet" and "Kubelet needs time to handle node shutdown".
	Who, Why string

	// Logger receives the log. If nil, nothing is logged.
	Logger *slog.Logger
}

// A Trigger is a [shutdown.Trigger] that uses logind.
type Trigger struct{ cfg Config }

var _ shutdown.Trigger = (*Trigger)(nil)

// New returns a Trigger, or an error if cfg is invalid. It does not connect to the bus.
func New(cfg Config) (*Trigger, error) {
	if cfg.ReloadTimeout < 0 {
		return nil, errors.New("logind: Config.ReloadTimeout is negative")
	}
	if cfg.ConfDir == "" {
		cfg.ConfDir = "/etc/systemd/logind.conf.d"
	}
	if cfg.ReloadTimeout == 0 {
		cfg.ReloadTimeout = 5 * time.Second
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
func (t *Trigger) Watch(ctx context.Context, delay time.Duration, notify func(shutdown.Notice)) error {
	conn, err := t.connect(ctx)
	if err != nil {
		return fmt.Errorf("logind: connect to the bus: %w", err)
	}
	defer conn.Close()
	login := conn.Object(service, path)
	if err := t.raiseMaxDelay(ctx, conn, login, delay); err != nil {
		return fmt.Errorf("logind: %w", err)
	}
	// Later changes are signaled; the current state is read below.
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(path)); err != nil {
		return fmt.Errorf("logind: listen for %s: %w", prepare, err)
	}
	release := func() {} // releases the lock
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
	notify(shutdown.Notice{Stopping: stopping})
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
					release = func() {} // the shutdown in progress needs the lock
				}
				return errors.New("logind: bus connection closed")
			}
			if s.Name != manager+"."+prepare || len(s.Body) != 1 {
				continue
			}
			switch is, _ := s.Body[0].(bool); {
			case is && !stopping:
				stopping = true
				notify(shutdown.Notice{Stopping: true, Release: release})
			case !is && stopping:
				stopping = false
				release()
				release, err = t.inhibit(ctx, login)
				notify(shutdown.Notice{})
				if err != nil {
					return fmt.Errorf("logind: %w", err)
				}
			}
		}
	}
}

// connect opens a connection that is closed when ctx is done.
func (t *Trigger) connect(ctx context.Context) (*dbus.Conn, error) {
	opts := []dbus.ConnOption{dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())}
	if t.cfg.Address == "" {
		return dbus.ConnectSystemBus(opts...)
	}
	return dbus.Connect(t.cfg.Address, opts...)
}

// raiseMaxDelay raises the maximum delay of logind if it is below delay.
func (t *Trigger) raiseMaxDelay(ctx context.Context, conn *dbus.Conn, login dbus.BusObject, delay time.Duration) error {
	most, err := maxDelay(login)
	if err != nil || most >= delay {
		return err
	}
	file := filepath.Join(t.cfg.ConfDir, confFile)
	seconds := int64((delay + time.Second - 1) / time.Second)
	text := fmt.Sprintf("# Written for the graceful shutdown of a Kubernetes node.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := os.MkdirAll(t.cfg.ConfDir, 0o755); err != nil {
		return err
	}
	if err := checkpoint.Replace(file, []byte(text), 0o644); err != nil {
		return err
	}
	const hangUp = int32(1) // SIGHUP reloads the configuration
	systemd := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", hangUp).Err; err != nil {
		return fmt.Errorf("reload logind after writing %s: %w", file, err)
	}
	late := time.NewTimer(t.cfg.ReloadTimeout)
	defer late.Stop()
	for {
		switch most, err = maxDelay(login); {
		case err != nil:
			return err
		case most >= delay:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("maximum delay is %v, node requires %v: %s has no effect; another file in the directory may override it", most, delay, file)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// maxDelay returns logind's maximum delay of a shutdown.
func maxDelay(login dbus.BusObject) (time.Duration, error) {
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

// inhibit takes a delay lock. release may be called more than once.
func (t *Trigger) inhibit(ctx context.Context, login dbus.BusObject) (release func(), err error) {
	var fd dbus.UnixFD
	err = login.CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", t.cfg.Who, t.cfg.Why, "delay").Store(&fd)
	if err != nil {
		return func() {}, fmt.Errorf("take delay lock: %w", err)
	}
	file := os.NewFile(uintptr(fd), "inhibitor")
	return sync.OnceFunc(func() { _ = file.Close() }), nil
}
