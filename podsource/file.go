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

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// A FileConfig says where manifests lie.
type FileConfig struct {
	// Path of a manifest, or of a directory of them. It need not exist (yet).
	// A relative path is made absolute once, in NewFile. Required.
	Path string

	// NodeName is the node whose pods these are. Required.
	NodeName string

	// LocalObjects lets the pods refer to ConfigMaps and Secrets, and have inline
	// volumes of CSI drivers: right where the objects come from files as well and
	// drivers register with nobody but this node, and wrong where an API server has them,
	// around whose permissions static pods would be a way (src-21).
	LocalObjects bool

	// Period between two looks at everything, whatever the file system's
	// notifications say. 0: 20 s (src-24). It bounds how long a change stays
	// unseen where there are none: on network file systems, behind links.
	Period time.Duration

	// Settle is how long a file must rest before it is read, so that one
	// that is written in place is not taken half, and how long
	// notifications are collected. 0: 100 ms. Negative: not at all; right if
	// all writers rename their files into place.
	Settle time.Duration

	// Logger; nil discards.
	Logger *slog.Logger

	// Hooks observe.
	Hooks ManifestHooks
}

// FileHooks observe a [File]; any may be nil. They are called by the goroutine
// that reads.
type ManifestHooks struct {
	// Problem: a path cannot be used, or for another reason than before.
	Problem func(Problem)

	// Mended: nothing is wrong with a path any more, or it is gone.
	Resolved func(path string)
}

const (
	defaultPeriod = 20 * time.Second
	defaultSettle = 100 * time.Millisecond

	// maxSettles bounds how often the first set waits for a file that is
	// never left alone.
	maxSettleReads = 20
)

// A File is a PodSource of manifests in the file system: one pod per file, made
// static by [Static].
//
// Of a directory, names that begin with "." and what lies in directories below
// are not looked at. A manifest that cannot be used is reported by Problems and
// harms no other; if an earlier version of it could be used, that one stays in
// force, until the file can be used again or is gone (lq-23).
//
// On Linux, a manifest that is removed and created again is a removal and an addition,
// as in the kubelet, even if both happen between two reads and the pod is the same: the
// pod is restarted. One that is written in place, or that another file is renamed over,
// is not.
type File struct {
	cfg FileConfig

	// Owned by whoever calls Read, one at a time.
	manifests []manifestState // sorted by path
	pods      []*v1.Pod       // what is in force of them
	lastRead  time.Time       // when Path could be listed last
	complete  bool            // every file there was has been read at least once

	// removed are the manifests that were removed and whose new file has not been
	// read yet. recreated are the pods of those whose new file holds the same pod:
	// each is delivered as a removal and an addition.
	removed   map[string]bool
	recreated map[types.UID]bool

	problems problemTracker
}

// NewFile checks cfg. It reads nothing.
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

// Problems returns what cannot be used at present, sorted by path. It may be
// called at any time.
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

// checkNodeName refuses what can end no pod's name.
func checkNodeName(config, name string) error {
	for _, msg := range apivalidation.NameIsDNSSubdomain(strings.ToLower(name), false) {
		return fmt.Errorf("podsource: %w", field.Invalid(field.NewPath(config, "NodeName"), name, msg))
	}
	return nil
}

// Read looks at everything once and returns the pods in force, in the order of
// their files. It is the step under Run, for programs that have a loop of
// their own; not to be called while Run runs.
//
// An error means that there is no set to deliver: the path cannot be looked at
// (unlike one that does not exist: that has no pods, src-23), it is a single
// manifest that has never been good (src-26), or a file was being written to
// before there ever was a whole set. Other manifests that cannot be used are
// no error but a [Problem].
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

// read also returns the path of a file that was passed over because it is
// being written to; "" if there is none.
func (f *File) read(now time.Time) (unsettled string, err error) {
	paths, dir, err := list(f.cfg.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		err = fmt.Errorf("podsource: %s: %w", f.cfg.Path, bare(err))
		f.pods = f.problems.publish(f.manifests, now, &Problem{Path: f.cfg.Path, Err: err, LastGood: f.lastRead})
		return "", err
	}
	f.lastRead = now

	known := make(map[string]manifestState, len(f.manifests))
	for _, m := range f.manifests {
		known[m.path] = m
	}
	f.manifests = nil
	removed := f.removed
	f.removed = nil
	for _, path := range paths {
		m := known[path]
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
		return manifest.Static(data, f.cfg.NodeName, "file:"+path, manifest.StaticOptions{LocalObjects: f.cfg.LocalObjects})
	}
}

// Run delivers the pods at once and whenever they change. It never fails: a
// path that cannot be read now may be readable later.
func (f *File) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	w := newWatch(f.cfg.Path)
	defer w.close()
	var sent []*v1.Pod
	synced, rest := false, firstRetry
	for looks := 1; ; looks++ {
		// Watched before it is read, so that no change falls in between.
		wait := f.cfg.Period
		if err := w.ensure(); err != nil {
			f.cfg.Logger.Debug("no notifications of changes", "path", f.cfg.Path, "err", err)
			wait = min(wait, rest) // src-28
			rest = min(2*rest, lastRetry)
		} else {
			rest = firstRetry
		}
		for path := range w.takeRemoved() {
			f.markRemoved(path, true)
		}
		f.recreated = make(map[types.UID]bool)
		unsettled, err := f.read(time.Now())
		if unsettled != "" {
			wait = min(wait, f.cfg.Settle+time.Millisecond)
		}
		// The first set is the one by which pods of an earlier run of this
		// agent are judged: it waits for files that are being written.
		ready := err == nil && (f.complete || looks > maxSettleReads)
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
