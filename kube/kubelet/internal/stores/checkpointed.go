package stores

import (
	"os"
	"path/filepath"
	"time"

	"github.com/kubeparts/kubeparts/podsource"
)

// SourceTimeout is the time after which a source that has not synced counts as
// unreachable, so that its checkpoint is used.
const SourceTimeout = 10 * time.Second

// Checkpointed returns a source that uses its pods of an earlier process if it has not
// synced within patience.
func Checkpointed(b Base, name string, source podsource.PodSource, patience time.Duration) (podsource.PodSource, error) {
	dir := filepath.Join(b.Config.RootDir, "sources")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return podsource.NewCheckpoint(podsource.CheckpointConfig{Source: source, Path: filepath.Join(dir, name+".json"), Patience: patience, Logger: b.Logger})
}
