package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

// The types of plugins.
const (
	CSIPlugin    = registerapi.CSIPlugin
	DevicePlugin = registerapi.DevicePlugin
	DRAPlugin    = registerapi.DRAPlugin
)

const (
	dialTimeout   = 10 * time.Second
	infoTimeout   = time.Second
	notifyTimeout = 5 * time.Second
	giveUpTimeout = 30 * time.Second
	firstRetry    = time.Second
	lastRetry     = 2 * time.Minute
)

// A Handler registers plugins of one type.
type Handler interface {
	// Register registers a plugin that serves at the endpoint, the path of a socket. Its error
	// is reported to the plugin, and the registration is retried. It is called again for a
	// registered plugin with another endpoint.
	Register(ctx context.Context, name, endpoint string, versions []string) error

	// Deregister deregisters a plugin whose socket was removed. ctx has a timeout of 30 s.
	Deregister(ctx context.Context, name string)
}

// A Config configures a [Watcher].
type Config struct {
	// Dir is the directory of sockets. It is created if it does not exist. Required.
	Dir string

	// Handlers are the handlers by type of plugin. At least one is required.
	Handlers map[string]Handler

	// Period is the time between two reads of the directory without a notification of the
	// file system. Zero means 1 minute.
	Period time.Duration

	// If Logger is nil, log records are discarded.
	Logger *slog.Logger
}

// A Watcher registers the plugins of a directory.
type Watcher struct {
	cfg Config
	ran runonce.Guard

	// sockets are the observed sockets by path; used by Scan only.
	sockets map[string]*socket
}

// A socket is an observed socket.
type socket struct {
	info fs.FileInfo

	typ, name string // of the plugin, if registered
	taken     bool   // the handler has registered it
	notified  bool   // it is taken, and the plugin was notified of that

	retryAt time.Time // if not notified
	wait    time.Duration
}

// New returns a Watcher, or an error if cfg is invalid. It does not access any file.
func New(cfg Config) (*Watcher, error) {
	if cfg.Dir == "" {
		return nil, errors.New("register: Config.Dir is empty")
	}
	if len(cfg.Handlers) == 0 {
		return nil, errors.New("register: Config.Handlers is empty")
	}
	for typ, h := range cfg.Handlers {
		if h == nil {
			return nil, fmt.Errorf("register: Config.Handlers[%q] is nil", typ)
		}
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("register: Config.Period is %v", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Watcher{cfg: cfg, sockets: map[string]*socket{}}, nil
}

// Scan reads the directory once, registers new plugins, retries failed registrations that are due,
// deregisters plugins whose socket was removed, and waits for all of this. It returns the time of the
// next retry; zero if there is none. It must not be called while Run runs.
func (w *Watcher) Scan(ctx context.Context) (retryAt time.Time, err error) {
	found, err := list(w.cfg.Dir)
	if err != nil {
		return time.Now().Add(firstRetry), fmt.Errorf("register: %w", err)
	}
	gone := map[string]*socket{}
	for path, s := range w.sockets {
		if info, ok := found[path]; ok && same(info, s.info) {
			continue
		}
		delete(w.sockets, path)
		if _, again := found[path]; again && s.taken {
			// Most likely the same plugin at a new socket; its volumes must not be
			// without a driver in the meantime.
			w.sockets[path] = &socket{info: found[path], typ: s.typ, name: s.name}
		} else if s.taken {
			gone[path] = s
		}
	}
	for path, s := range gone {
		if other := w.sharing(s); other != nil {
			other.taken, other.notified = false, false // register it again: s may have replaced it
			continue
		}
		w.giveUp(ctx, path, s)
	}
	now := time.Now()
	var wg sync.WaitGroup
	for path, info := range found {
		s := w.sockets[path]
		if s == nil {
			s = &socket{info: info}
			w.sockets[path] = s
		}
		if !s.notified && !s.retryAt.After(now) {
			wg.Go(func() { w.try(ctx, path, s) })
		}
	}
	wg.Wait()
	for _, s := range w.sockets {
		if !s.notified && (retryAt.IsZero() || s.retryAt.Before(retryAt)) {
			retryAt = s.retryAt
		}
	}
	return retryAt, nil
}

// sharing returns another existing socket of the plugin of s; nil if there is none. There are two during
// an upgrade of a plugin.
func (w *Watcher) sharing(s *socket) *socket {
	for _, other := range w.sockets {
		if other.name == s.name && other.typ == s.typ {
			return other
		}
	}
	return nil
}

// try registers the plugin of a socket, which no other goroutine uses. A plugin that cannot be
// notified remains registered, and is registered again later.
func (w *Watcher) try(ctx context.Context, path string, s *socket) {
	before := *s
	info, refused, err := w.takeOn(ctx, path)
	if refused == nil && info != nil {
		s.taken, s.typ, s.name = true, info.GetType(), info.GetName()
		if before.name != "" && (before.name != s.name || before.typ != s.typ) {
			w.giveUp(ctx, path, &before)
		}
	} else if before.name != "" { // it was registered before
		w.giveUp(ctx, path, &before)
		s.taken, s.name, s.typ = false, "", ""
	}
	if err == nil {
		s.notified, s.retryAt, s.wait = true, time.Time{}, 0
		w.cfg.Logger.Debug("Plugin registered", "socket", path, "type", s.typ, "plugin", s.name)
		return
	}
	s.wait = min(max(2*s.wait, firstRetry), lastRetry)
	s.retryAt = time.Now().Add(s.wait)
	if ctx.Err() == nil {
		w.cfg.Logger.Warn("Failed to register plugin; will retry", "socket", path, "err", err, "retry", s.wait)
	}
}

// takeOn reads the info of a plugin, calls its handler, and reports the result to the plugin.
// refused is the error of the handler; err is the first error of all.
func (w *Watcher) takeOn(ctx context.Context, path string) (info *registerapi.PluginInfo, refused, err error) {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close() }() // the error has no consequence
	client := registerapi.NewRegistrationClient(conn)

	// The first call waits for the connection.
	asking, cancel := context.WithTimeout(ctx, dialTimeout+infoTimeout)
	defer cancel()
	info, err = client.GetInfo(asking, new(registerapi.InfoRequest))
	if err != nil {
		return nil, nil, fmt.Errorf("GetInfo: %w", err)
	}
	refused = w.hand(ctx, info, path)
	status := &registerapi.RegistrationStatus{PluginRegistered: refused == nil}
	if refused != nil {
		status.Error = refused.Error()
	}
	telling, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if _, err = client.NotifyRegistrationStatus(telling, status); err != nil {
		err = fmt.Errorf("NotifyRegistrationStatus: %w", err)
	}
	return info, refused, cmp.Or(refused, err)
}

func (w *Watcher) hand(ctx context.Context, info *registerapi.PluginInfo, path string) error {
	handler := w.cfg.Handlers[info.GetType()]
	if handler == nil {
		return fmt.Errorf("no handler registered for plugin type: %s at socket %s", info.GetType(), path)
	}
	endpoint := info.GetEndpoint()
	if endpoint == "" {
		endpoint = path
	}
	return handler.Register(ctx, info.GetName(), strings.TrimPrefix(endpoint, "unix://"), info.GetSupportedVersions())
}

func (w *Watcher) giveUp(ctx context.Context, path string, s *socket) {
	w.cfg.Logger.Debug("Plugin deregistered", "socket", path, "type", s.typ, "plugin", s.name)
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	w.cfg.Handlers[s.typ].Deregister(ctx, s.name)
}

// list returns the sockets in a directory tree by path.
func list(dir string) (map[string]fs.FileInfo, error) {
	found := map[string]fs.FileInfo{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), ".") || e.Type() != fs.ModeSocket:
			return nil
		}
		if info, err := e.Info(); err == nil {
			found[path] = info
		}
		return nil
	})
	return found, err
}

// same reports whether a socket is the one observed before, not another with the same name.
func same(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }
