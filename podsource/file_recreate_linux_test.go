package podsource_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
)

func TestAManifestThatIsRemovedAndCreatedAgainIsARemovalAndAnAddition(t *testing.T) {
	dir := t.TempDir()
	f, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "n", Period: time.Hour, Settle: 50 * time.Millisecond})
	require.NoError(t, err)
	web, db := filepath.Join(dir, "web.yaml"), filepath.Join(dir, "db.yaml")
	write(t, web, webYAML)
	write(t, db, manifest("db"))

	var mu sync.Mutex
	var history []string
	s := run(t, podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		return f.Run(ctx, func(pods []*v1.Pod) {
			mu.Lock()
			history = append(history, strings.Join(podNames(pods), " "))
			mu.Unlock()
			set(pods)
		})
	}))
	// next adds a pod and returns the sets until it is delivered.
	next := func(name string) []string {
		path := filepath.Join(dir, "z.yaml")
		write(t, path+".tmp", manifest(name))
		require.NoError(t, os.Rename(path+".tmp", path))
		s.await(t, "db", "web", name)
		mu.Lock()
		defer mu.Unlock()
		sets := history
		history = nil
		return sets
	}
	s.await(t, "db", "web")
	assert.Equal(t, []string{"db web", "db web z1"}, next("z1"))

	require.NoError(t, os.Remove(web))
	write(t, web, webYAML)
	assert.Contains(t, [][]string{
		{"db z1", "db web z2"},              // the files were read once
		{"db z1", "db web z1", "db web z2"}, // or more often
	}, next("z2"), "removed and created")

	require.NoError(t, os.Rename(web, filepath.Join(dir, ".web~"))) // an editor makes a backup
	write(t, web, webYAML)
	assert.Contains(t, next("z3"), "db z2", "renamed and created")

	write(t, web, webYAML)
	write(t, filepath.Join(dir, ".web"), manifest("db"))
	require.NoError(t, os.Rename(filepath.Join(dir, ".web"), db))
	assert.Equal(t, []string{"db web z4"}, next("z4"), "written in place, and replaced in one step")

	// A version that cannot be used keeps the last good one in force.
	require.NoError(t, os.Remove(web))
	write(t, web, "kind: Pod\n")
	assert.Equal(t, []string{"db web z5"}, next("z5"))
	require.Len(t, f.Problems(), 1)
}
