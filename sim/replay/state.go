package replay

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/sim/record"
)

// maxStates limits the files that a hostile recording can create.
const maxStates = 10_000

// writeState writes the checkpoints that the recorded agent found, below root.
func (x *index) writeState(root string) error {
	for _, s := range x.state[:min(len(x.state), maxStates)] {
		if s.File == "" || !filepath.IsLocal(filepath.FromSlash(s.File)) {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(s.File))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		var err error
		if s.Damaged || len(s.Content) == 0 {
			err = os.WriteFile(path, nil, 0o600)
		} else {
			err = checkpoint.Write(path, s.Content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restore is status.Config.Restore.
func (x *index) restore(uid types.UID) (v1.PodStatus, bool) {
	for _, s := range x.state {
		if s.Pod == uid && s.Status != nil {
			return *s.Status.DeepCopy(), true
		}
	}
	return v1.PodStatus{}, false
}

// hasFile reports whether the recorded agent found a checkpoint.
func (x *index) hasFile(name string) bool {
	return slices.ContainsFunc(x.state, func(s *record.State) bool { return s.File == name })
}

// resumed returns when a pause at a time ends; zero if there is none.
func (x *index) resumed(now time.Duration) time.Duration {
	i := sort.Search(len(x.pauses), func(i int) bool { return x.pauses[i].end > now })
	if i < len(x.pauses) && x.pauses[i].begin <= now {
		return x.pauses[i].end
	}
	return 0
}
