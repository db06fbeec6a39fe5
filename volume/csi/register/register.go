package register

import (
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

// The types of plugins that there are.
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

// A Handler takes plugins of one type on.
type Handler interface {
	// Register takes a plugin on, which answers at the endpoint, a path of a
	// socket. Its error is told to the plugin, which is tried again later. A
	// plugin that has registered before may do so again, at another endpoint.
	Register(ctx context.Context, name, endpoint string, versions []string) error

	// Deregister gives a plugin up whose socket is gone. It has half a minute.
	Deregister(ctx context.Context, name string)
}

// A Config says where plugins are found, and who takes them on.
type Config struct {
	// Dir is made if it isn't there. Required.
	Dir string

	// Handlers by type of plugin. Required: without one there is nothing to do.
	Handlers map[string]Handler

	// Period between two looks, whatever the file system's notifications say.
	// Zero: 1 minute. Without notifications (Look's caller has none) it is how
	// late a plugin may be seen.
	Period time.Duration

	// Logger; nil discards.
	Logger *slog.Logger
}

// A Watcher watches a directory for plugins.
type Watcher struct {
	cfg Config
	ran runonce.Guard

	// sockets is owned by Look: what is known, by path.
	sockets map[string]*socket
}

// A socket is one that was seen.
type socket struct {
	info fs.FileInfo

	typ, name string // of the plugin, if it was taken on
	taken     bool

	retryAt time.Time // if it wasn't
	wait    time.Duration
}

// New checks cfg. It touches no file.
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

// Look takes on what is new, tries again what is due, gives up what is gone, and
// returns when all that has ended, with the time of the next retry; zero if there is
// none. It is the step under Run: not to be called while Run runs.
func (w *Watcher) Look(ctx context.Context) (retryAt time.Time, err error) {
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
			// The same plugin, most likely, at a new socket: its volumes are
			// not without a driver in the meantime.
			w.sockets[path] = &socket{info: found[path], typ: s.typ, name: s.name}
		} else if s.taken {
			gone[path] = s
		}
	}
	for path, s := range gone {
		if other := w.sharing(s); other != nil {
			other.taken = false // it is taken on anew: the last one to come was s, perhaps
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
		if !s.taken && !s.retryAt.After(now) {
			wg.Go(func() { w.try(ctx, path, s) })
		}
	}
	wg.Wait()
	for _, s := range w.sockets {
		if !s.taken && (retryAt.IsZero() || s.retryAt.Before(retryAt)) {
			retryAt = s.retryAt
		}
	}
	return retryAt, nil
}

// sharing returns a socket that is there of the plugin that s was of; nil if there is
// none. There are two while one version of a plugin takes the place of another.
func (w *Watcher) sharing(s *socket) *socket {
	for _, other := range w.sockets {
		if other.name == s.name && other.typ == s.typ {
			return other
		}
	}
	return nil
}

// try takes on the plugin at a socket, which only this call touches.
func (w *Watcher) try(ctx context.Context, path string, s *socket) {
	before := *s
	info, err := w.takeOn(ctx, path)
	if err == nil {
		s.taken, s.typ, s.name, s.retryAt, s.wait = true, info.GetType(), info.GetName(), time.Time{}, 0
		w.cfg.Logger.Debug("plugin registered", "socket", path, "type", s.typ, "plugin", s.name)
		if before.name != "" && (before.name != s.name || before.typ != s.typ) {
			w.giveUp(ctx, path, &before)
		}
		return
	}
	if before.name != "" { // it was taken on at an earlier socket
		w.giveUp(ctx, path, &before)
		s.name, s.typ = "", ""
	}
	s.wait = min(max(2*s.wait, firstRetry), lastRetry)
	s.retryAt = time.Now().Add(s.wait)
	if ctx.Err() == nil {
		w.cfg.Logger.Warn("plugin not registered", "socket", path, "err", err, "retry", s.wait)
	}
}

// takeOn asks a plugin who it is, has its handler take it on, and tells it so.
func (w *Watcher) takeOn(ctx context.Context, path string) (*registerapi.PluginInfo, error) {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // nothing is lost with it
	client := registerapi.NewRegistrationClient(conn)

	// The first call waits for the connection.
	asking, cancel := context.WithTimeout(ctx, dialTimeout+infoTimeout)
	defer cancel()
	info, err := client.GetInfo(asking, new(registerapi.InfoRequest))
	if err != nil {
		return nil, fmt.Errorf("GetInfo: %w", err)
	}
	refused := w.hand(ctx, info, path)
	status := &registerapi.RegistrationStatus{PluginRegistered: refused == nil}
	if refused != nil {
		status.Error = refused.Error()
	}
	telling, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if _, err := client.NotifyRegistrationStatus(telling, status); err != nil && refused == nil {
		// The plugin doesn't know that it was taken on. It may answer all the
		// same, and if not it will say so itself.
		w.cfg.Logger.Debug("plugin could not be told", "socket", path, "err", err)
	}
	return info, refused
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
	w.cfg.Logger.Debug("plugin is gone", "socket", path, "type", s.typ, "plugin", s.name)
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	w.cfg.Handlers[s.typ].Deregister(ctx, s.name)
}

// list returns the sockets in a directory and those below, by path.
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

// same reports whether a socket is the one that was seen before, not another of its
// name.
func same(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }
