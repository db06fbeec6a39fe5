package objectdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/volume/payload"
)

const (
	configMap = payload.KindConfigMap
	secret    = payload.KindSecret
)

// A Config configures a [Dir].
type Config struct {
	// Dir is the directory. It need not exist. Required.
	Dir string

	// Changed is called for each object that is added, changed or removed, after the methods
	// return the new state; see volume.Manager.ObjectChanged. It may be nil.
	Changed func(kind, namespace, name string)

	// Period is the time between two reads of the directory without a notification of the
	// file system. Zero means 20s.
	Period time.Duration

	// Settle is the time without notifications before files are read, so that a file is not
	// read while it is written. Zero means 100ms.
	Settle time.Duration

	// If Logger is nil, log records are discarded. Values of objects are not logged.
	Logger *slog.Logger
}

// A Problem is an invalid file or directory.
type Problem struct {
	Path string
	Err  error

	// Kept reports whether the objects of its last valid version are in use.
	Kept bool
}

// A Dir provides the objects of a directory. It is a payload.Objects.
type Dir struct {
	cfg Config
	ran runonce.Guard

	// kept are the last valid versions of paths; used by Read only.
	kept map[string]found

	// read is closed when the directory has been read once.
	read chan struct{}

	// mu guards the fields below.
	mu       sync.Mutex
	objects  map[key]any
	problems []Problem
	synced   bool
}

// New returns a Dir, or an error if cfg is invalid. It does not access the directory.
func New(cfg Config) (*Dir, error) {
	if cfg.Dir == "" {
		return nil, errors.New("objectdir: Config.Dir is empty")
	}
	path, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("objectdir: Config.Dir: %w", err)
	}
	cfg.Dir = path
	if cfg.Period < 0 || cfg.Settle < 0 {
		return nil, fmt.Errorf("objectdir: Config.Period is %v, Config.Settle %v", cfg.Period, cfg.Settle)
	}
	if cfg.Period == 0 {
		cfg.Period = 20 * time.Second
	}
	if cfg.Settle == 0 {
		cfg.Settle = 100 * time.Millisecond
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string, string, string) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Dir{cfg: cfg, kept: map[string]found{}, read: make(chan struct{})}, nil
}

// ConfigMap implements payload.Objects. It blocks until the directory has been
// read once.
func (d *Dir) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return get[*v1.ConfigMap](ctx, d, key{configMap, namespace, name})
}

// Secret implements payload.Objects, as ConfigMap does.
func (d *Dir) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return get[*v1.Secret](ctx, d, key{secret, namespace, name})
}

// ErrNoTokens is the error of [Dir.Token].
var ErrNoTokens = errors.New("service account tokens are signed by an API server, and this agent has none: its objects are files")

// Token is a function for token.Config.Get. It always returns an error that is [ErrNoTokens].
func (*Dir) Token(_ context.Context, namespace, serviceAccount string, _ *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return nil, fmt.Errorf("service account %s/%s: %w", namespace, serviceAccount, ErrNoTokens)
}

// notFound is the error for an object that does not exist.
type notFound struct{ key }

func (e notFound) Error() string {
	return fmt.Sprintf("%s %q not found", strings.ToLower(e.kind), e.name)
}
func (e notFound) Is(target error) bool { return target == fs.ErrNotExist }

func get[T any](ctx context.Context, d *Dir, k key) (T, error) {
	var none T
	select {
	case <-d.read:
	case <-ctx.Done():
		return none, fmt.Errorf("objectdir: %s has not been read yet: %w", d.cfg.Dir, ctx.Err())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	object, ok := d.objects[k].(T)
	if !ok {
		return none, notFound{k}
	}
	return object, nil
}

func (k key) String() string { return fmt.Sprintf("%s %s/%s", k.kind, k.namespace, k.name) }

// Problems returns the current problems, sorted by path. The caller owns the result.
func (d *Dir) Problems() []Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.problems)
}

// Read reads the directory once and calls Changed for each change. It is for programs that do not use
// Run. It returns an error if the directory itself cannot be read; the objects are then unchanged.
func (d *Dir) Read() error {
	all, err := readDir(d.cfg.Dir)
	if err != nil {
		err = fmt.Errorf("objectdir: %w", err)
		d.publish(nil, []Problem{{Path: d.cfg.Dir, Err: err, Kept: len(d.kept) > 0}}, false)
		return err
	}
	objects, from := map[key]any{}, map[key]string{}
	var problems []Problem
	kept := map[string]found{}
	for _, f := range all {
		if f.err != nil {
			old, ok := d.kept[f.path]
			problems = append(problems, Problem{Path: f.path, Err: f.err, Kept: ok})
			if !ok {
				continue
			}
			f = old
		}
		kept[f.path] = f
		for k, object := range f.objects {
			if other, taken := from[k]; taken {
				problems = append(problems, Problem{Path: f.path, Err: fmt.Errorf("objectdir: %s is already defined in %s", k, other)})
				continue
			}
			objects[k], from[k] = object, f.path
		}
	}
	d.kept = kept
	d.publish(objects, problems, true)
	return nil
}

// publish replaces the objects and reports the changes.
func (d *Dir) publish(objects map[key]any, problems []Problem, whole bool) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	d.mu.Lock()
	oldProblems, old, first := d.problems, d.objects, !d.synced
	d.problems = problems
	if whole {
		d.objects, d.synced = objects, true
	}
	d.mu.Unlock()
	for _, p := range problems {
		if !slices.ContainsFunc(oldProblems, func(o Problem) bool { return o.Path == p.Path && o.Err.Error() == p.Err.Error() }) {
			d.cfg.Logger.Warn("Failed to read object", "path", p.Path, "err", p.Err, "kept", p.Kept)
		}
	}
	if !whole {
		return
	}
	if first {
		close(d.read)
	}
	var changed []key
	for k := range old {
		if objects[k] == nil {
			changed = append(changed, k)
		}
	}
	for k, object := range objects {
		if !reflect.DeepEqual(old[k], object) {
			changed = append(changed, k)
		}
	}
	slices.SortFunc(changed, func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range slices.Compact(changed) {
		d.cfg.Changed(k.kind, k.namespace, k.name)
	}
}

// Names returns the names of all objects, sorted, as "ConfigMap default/web".
func (d *Dir) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for k := range maps.Keys(d.objects) {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}
