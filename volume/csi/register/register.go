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

	tasks sync.WaitGroup
	ended chan struct{} // of capacity 1: a task has ended

	// mu guards the fields below, also those of sockets. idle is signaled when a plugin
	// leaves working.
	mu      sync.Mutex
	idle    *sync.Cond
	sockets map[string]*socket // observed, by path
	working map[pluginKey]bool // a handler is called for the plugin
}

// A pluginKey identifies a plugin.
type pluginKey struct{ typ, name string }

// A socket is an observed socket.
type socket struct {
	info fs.FileInfo

	pluginKey      // of the plugin, if registered
	taken     bool // the handler has registered it
	notified  bool // it is taken, and the plugin was notified of that

	busy  bool // a task registers it
	again bool // it must be registered again when the task has ended
	gone  bool // it was removed during the task

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
	w := &Watcher{cfg: cfg, ended: make(chan struct{}, 1), sockets: map[string]*socket{}, working: map[pluginKey]bool{}}
	w.idle = sync.NewCond(&w.mu)
	return w, nil
}

// Scan reads the directory once, registers new plugins, retries failed registrations that are due,
// deregisters plugins whose socket was removed, and waits for all of this. It returns the time of the
// next retry; zero if there is none. It must not be called while Run runs.
func (w *Watcher) Scan(ctx context.Context) (retryAt time.Time, err error) {
	for {
		if retryAt, err = w.scan(ctx); err != nil {
			return retryAt, err
		}
		w.tasks.Wait()
		w.mu.Lock()
		retryAt = w.retryAtLocked()
		w.mu.Unlock()
		if retryAt.IsZero() || retryAt.After(time.Now()) {
			return retryAt, nil
		}
	}
}

// scan is Scan without waiting: each plugin has a task, so that one that does not answer does not delay
// the others.
func (w *Watcher) scan(ctx context.Context) (retryAt time.Time, err error) {
	found, err := list(w.cfg.Dir)
	if err != nil {
		return time.Now().Add(firstRetry), fmt.Errorf("register: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := map[string]pluginKey{}
	for path, s := range w.sockets {
		if info, ok := found[path]; ok && same(info, s.info) {
			continue
		}
		delete(w.sockets, path)
		s.gone = true
		if _, again := found[path]; again && s.name != "" {
			// Most likely the same plugin at a new socket; its volumes must not be
			// without a driver in the meantime.
			w.sockets[path] = &socket{info: found[path], pluginKey: s.pluginKey}
		} else if s.taken && !s.busy { // otherwise its task deregisters it
			gone[path] = s.pluginKey
		}
	}
	for path, k := range gone {
		w.tasks.Go(func() { w.giveUp(ctx, path, k) })
	}
	now := time.Now()
	for path, info := range found {
		s := w.sockets[path]
		if s == nil {
			s = &socket{info: info}
			w.sockets[path] = s
		}
		if !s.busy && !s.notified && !s.retryAt.After(now) {
			s.busy = true
			w.tasks.Go(func() { w.try(ctx, path, s) })
		}
	}
	return w.retryAtLocked(), nil
}

// retryAtLocked returns the time of the next retry; zero if there is none.
func (w *Watcher) retryAtLocked() (at time.Time) {
	for _, s := range w.sockets {
		if !s.busy && !s.notified && (at.IsZero() || s.retryAt.Before(at)) {
			at = s.retryAt
		}
	}
	return at
}

// sharingLocked returns another existing socket of the plugin; nil if there is none. There are two
// during an upgrade of a plugin.
func (w *Watcher) sharingLocked(k pluginKey) *socket {
	for _, other := range w.sockets {
		if other.pluginKey == k {
			return other
		}
	}
	return nil
}

// enter waits until no handler is called for the plugin.
func (w *Watcher) enter(k pluginKey) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.working[k] {
		w.idle.Wait()
	}
	w.working[k] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.working, k)
		w.idle.Broadcast()
	}
}

// try registers the plugin of a socket, for which no other task does. A plugin that cannot be notified
// remains registered, and is registered again later.
func (w *Watcher) try(ctx context.Context, path string, s *socket) {
	w.mu.Lock()
	before := s.pluginKey
	w.mu.Unlock()
	refused, err := w.takeOn(ctx, path, s)
	w.mu.Lock()
	s.busy = false
	var drop []pluginKey
	if before.name != "" && (!s.taken || refused != nil || s.pluginKey != before) { // it was registered before
		drop = append(drop, before)
	}
	if s.taken && s.gone {
		drop = append(drop, s.pluginKey)
	}
	if !s.taken {
		s.pluginKey = pluginKey{}
	}
	done := err == nil && !s.again
	s.again = false
	if done {
		s.notified, s.retryAt, s.wait = true, time.Time{}, 0
	} else if err != nil {
		s.wait = min(max(2*s.wait, firstRetry), lastRetry)
		s.retryAt = time.Now().Add(s.wait)
	}
	wait, key := s.wait, s.pluginKey
	w.mu.Unlock()
	for _, k := range drop {
		w.giveUp(ctx, path, k)
	}
	switch {
	case done:
		w.cfg.Logger.Debug("Plugin registered", "socket", path, "type", key.typ, "plugin", key.name)
	case err != nil && ctx.Err() == nil:
		w.cfg.Logger.Warn("Failed to register plugin; will retry", "socket", path, "err", err, "retry", wait)
	}
	w.end()
}

// end makes Run scan again.
func (w *Watcher) end() {
	select {
	case w.ended <- struct{}{}:
	default:
	}
}

// takeOn reads the info of a plugin, calls its handler, and reports the result to the plugin. It sets the
// plugin of the socket. refused is the error of the handler; err is the first error of all.
func (w *Watcher) takeOn(ctx context.Context, path string, s *socket) (refused, err error) {
	w.mu.Lock()
	s.taken = false
	w.mu.Unlock()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // the error has no consequence
	client := registerapi.NewRegistrationClient(conn)

	// The first call waits for the connection.
	asking, cancel := context.WithTimeout(ctx, dialTimeout+infoTimeout)
	defer cancel()
	info, err := client.GetInfo(asking, new(registerapi.InfoRequest))
	if err != nil {
		return nil, fmt.Errorf("GetInfo: %w", err)
	}
	refused = w.take(ctx, path, s, info)
	status := &registerapi.RegistrationStatus{PluginRegistered: refused == nil}
	if refused != nil {
		status.Error = refused.Error()
	}
	telling, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if _, err = client.NotifyRegistrationStatus(telling, status); err != nil {
		err = fmt.Errorf("NotifyRegistrationStatus: %w", err)
	}
	return refused, cmp.Or(refused, err)
}

// take calls the handler of a plugin, and sets the plugin of the socket if it registers it.
func (w *Watcher) take(ctx context.Context, path string, s *socket, info *registerapi.PluginInfo) error {
	k := pluginKey{info.GetType(), info.GetName()}
	defer w.enter(k)()
	err := w.hand(ctx, info, path)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.taken, s.pluginKey = true, k
	}
	return err
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

// giveUp deregisters a plugin whose socket was removed, or registers the plugin of another socket with its
// name again: the removed one may have replaced it.
func (w *Watcher) giveUp(ctx context.Context, path string, k pluginKey) {
	defer w.end()
	defer w.enter(k)()
	w.mu.Lock()
	other := w.sharingLocked(k)
	if other != nil {
		other.notified, other.again, other.retryAt = false, other.busy, time.Now()
	}
	w.mu.Unlock()
	if other != nil {
		return
	}
	w.cfg.Logger.Debug("Plugin deregistered", "socket", path, "type", k.typ, "plugin", k.name)
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	w.cfg.Handlers[k.typ].Deregister(ctx, k.name)
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
