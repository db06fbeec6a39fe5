package podsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// FileConfig configures a [File].
type FileConfig struct {
	// Path of a manifest, or of a directory of manifests. It need not exist. A relative path
	// is made absolute in NewFile. Required.
	Path string

	// NodeName is the name of the node, to which the pods are bound. Required.
	NodeName string

	// LocalObjects permits references to ConfigMaps and Secrets, and inline volumes of CSI
	// drivers. Set it only if the objects come from files too and the drivers register with
	// this node only: static pods would circumvent the permissions of an API server
	// (rule src-21).
	LocalObjects bool

	// Exists reports whether the node has a pod of this UID: see manifest.StaticOptions. If
	// nil, static pods that another version started are replaced.
	Exists func(types.UID) bool

	// Period is the time between two complete reads, independent of notifications of the
	// file system. Zero means 20 s. Changes without a notification, on network file systems
	// and behind symbolic links, are detected after at most a Period.
	Period time.Duration

	// Settle is how long a file must be unmodified before it is read, so that a file that is
	// being written is not read partially, and how long notifications are collected. Zero
	// means 100 ms. A negative value disables it, for writers that rename complete files into
	// place.
	Settle time.Duration

	// Logger receives problems. If nil, logs are discarded.
	Logger *slog.Logger

	// Hooks are called for observation.
	Hooks ManifestHooks
}

// ManifestHooks observe a [File] or a [URL]. Any may be nil. They are called on the goroutine of Run or
// Read and must not block.
type ManifestHooks struct {
	// Problem is called when a path has a problem, and when its error changes.
	Problem func(Problem)

	// Resolved is called when a path has no problem any more, or was removed.
	Resolved func(path string)
}

// Join returns ManifestHooks that call the functions of h and then those of others, in order.
func (h ManifestHooks) Join(others ...ManifestHooks) ManifestHooks {
	for _, o := range others {
		compose.Add(&h.Problem, o.Problem)
		compose.Add(&h.Resolved, o.Resolved)
	}
	return h
}

const (
	defaultPeriod = 20 * time.Second
	defaultSettle = 100 * time.Millisecond

	// maxSettleReads is the number of reads after which the first set is delivered although a
	// file is still being written.
	maxSettleReads = 20
)

// A File is a PodSource of manifests in the file system: one pod per file, converted to a static pod by
// [manifest.Static].
//
// In a directory, names that begin with "." and subdirectories are ignored. A manifest that cannot be
// used is reported by Problems and does not affect others. Its last valid version stays in effect until
// the file is valid again or removed.
//
// On Linux, a manifest that is removed and created again is a removal and an addition,
// as in the kubelet, even if both happen between two reads and the pod is the same: the
// pod is restarted. One that is written in place, or that another file is renamed over,
// is not.
type File struct {
	cfg FileConfig

	// Used by one call of Read at a time.
	manifests []manifestState // sorted by path
	pods      []*v1.Pod       // of the valid versions
	lastRead  time.Time       // when Path was last listed successfully
	complete  bool            // every file was read at least once

	// removed are the manifests that were removed and whose new file has not been
	// read yet. recreated are the pods of those whose new file holds the same pod:
	// each is delivered as a removal and an addition.
	removed   map[string]bool
	recreated map[types.UID]bool

	problems problemTracker
}

// NewFile returns a File, or an error if cfg is invalid. It does not read the path.
func NewFile(cfg FileConfig) (*File, error) {
	if cfg.Path == "" {
		return nil, errors.New("podsource: FileConfig.Path is empty")
	}
	if cfg.NodeName == "" {
		return nil, errors.New("podsource: FileConfig.NodeName is empty")
	}
	if err := checkNodeName("FileConfig", cfg.NodeName); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("podsource: FileConfig.Path: %w", err)
	}
	cfg.Path = path
	if cfg.Period < 0 {
		return nil, fmt.Errorf("podsource: FileConfig.Period is %v", cfg.Period)
	}
	cfg.Period, cfg.Settle = cmp.Or(cfg.Period, defaultPeriod), cmp.Or(cfg.Settle, defaultSettle)
	cfg.Settle = max(cfg.Settle, 0)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &File{cfg: cfg, problems: problemTracker{logger: cfg.Logger, hooks: cfg.Hooks}}, nil
}

// Problems returns the current problems, sorted by path. Safe for concurrent use.
func (f *File) Problems() []Problem { return f.problems.list() }

// Healthy returns an error that joins those of Problems; nil if there are none. Safe for
// concurrent use.
func (f *File) Healthy() error {
	var errs []error
	for _, p := range f.Problems() {
		errs = append(errs, p.Err)
	}
	return errors.Join(errs...)
}

// checkNodeName returns an error unless the name can be the suffix of a pod's name.
func checkNodeName(config, name string) error {
	for _, msg := range apivalidation.NameIsDNSSubdomain(strings.ToLower(name), false) {
		return fmt.Errorf("podsource: %w", field.Invalid(field.NewPath(config, "NodeName"), name, msg))
	}
	return nil
}

// Read reads all manifests once and returns the pods in effect, in the order of their files. It is for
// programs with a loop of their own and must not be called while Run runs.
//
// It returns an error if there is no set to deliver: the path cannot be read, it is a single manifest
// that has never been valid, or a file was being written before there was a complete set. A path that
// does not exist has no pods. Other manifests that cannot be used are a [Problem], not an error.
func (f *File) Read() ([]*v1.Pod, error) {
	unsettled, err := f.read(time.Now())
	if err != nil {
		return nil, err
	}
	if unsettled != "" && !f.complete {
		return nil, fmt.Errorf("podsource: %s: is being written to", unsettled)
	}
	return slices.Clone(f.pods), nil
}

// read also returns the path of a file that was skipped because it is being written; "" if there is
// none.
func (f *File) read(now time.Time) (unsettled string, err error) {
	paths, dir, err := list(f.cfg.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		err = fmt.Errorf("podsource: %s: %w", f.cfg.Path, bare(err))
		f.pods = f.problems.publish(f.manifests, now, &Problem{Path: f.cfg.Path, Err: err, LastGood: f.lastRead})
		return "", err
	}
	f.lastRead = now

	previous := make(map[string]manifestState, len(f.manifests))
	for _, m := range f.manifests {
		previous[m.path] = m
	}
	f.manifests = nil
	removed := f.removed
	f.removed = nil
	for _, path := range paths {
		m := previous[path]
		m.path = path
		data, err := readManifest(path, now, f.cfg.Settle)
		if err == errUnsettled {
			unsettled = path
			f.markRemoved(path, removed[path])
		}
		was := m.pod
		m, ok := updateManifest(m, data, err, f.static(path), now)
		if !ok {
			continue
		}
		f.manifests = append(f.manifests, m)
		if removed[path] && err == nil && m.err == nil && was != nil && was.UID == m.pod.UID {
			f.recreated[was.UID] = true
		}
	}
	if missing {
		f.pods = f.problems.publish(f.manifests, now, &Problem{Path: f.cfg.Path, Err: fmt.Errorf("podsource: %s: does not exist", f.cfg.Path)})
		f.complete = true
		return "", nil
	}
	f.pods = f.problems.publish(f.manifests, now, nil)
	if !dir && len(f.manifests) == 1 && f.manifests[0].pod == nil {
		return unsettled, f.manifests[0].err
	}
	f.complete = f.complete || unsettled == ""
	return unsettled, nil
}

func (f *File) markRemoved(path string, removed bool) {
	if !removed {
		return
	}
	if f.removed == nil {
		f.removed = make(map[string]bool)
	}
	f.removed[path] = true
}

// static returns the function that decodes the manifest at path.
func (f *File) static(path string) func([]byte) (*v1.Pod, error) {
	return func(data []byte) (*v1.Pod, error) {
		return manifest.Static(data, f.cfg.NodeName, "file:"+path, manifest.StaticOptions{LocalObjects: f.cfg.LocalObjects, Exists: f.cfg.Exists})
	}
}

// Run passes the pods to set at once and whenever they change, until ctx is done; then it returns nil. A
// path that cannot be read is retried.
func (f *File) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	w := newWatch(f.cfg.Path)
	defer w.close()
	var sent []*v1.Pod
	synced, retry := false, firstRetry
	for reads := 1; ; reads++ {
		// The watch is added before the read, so that no change is missed in between.
		wait := f.cfg.Period
		if err := w.ensure(); err != nil {
			f.cfg.Logger.Debug("Failed to watch manifests; they are read periodically", "path", f.cfg.Path, "err", err)
			wait = min(wait, retry)
			retry = min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		for path := range w.takeRemoved() {
			f.markRemoved(path, true)
		}
		f.recreated = make(map[types.UID]bool)
		unsettled, err := f.read(time.Now())
		if unsettled != "" {
			wait = min(wait, f.cfg.Settle+time.Millisecond)
		}
		// The first set must be complete, since pods of an earlier agent that are not
		// in it are stopped.
		ready := err == nil && (f.complete || reads > maxSettleReads)
		if ctx.Err() != nil {
			return nil
		}
		if ready && synced && len(f.recreated) > 0 {
			sent = slices.DeleteFunc(slices.Clone(sent), func(p *v1.Pod) bool { return f.recreated[p.UID] })
			set(slices.Clone(sent))
		}
		if ready && (!synced || !slices.Equal(sent, f.pods)) {
			synced, sent = true, f.pods
			set(slices.Clone(f.pods))
		}
		if !w.wait(ctx, wait, f.cfg.Settle) {
			return nil
		}
	}
}
