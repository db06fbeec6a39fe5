package imagegc_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// An agent that is killed at any moment, also during a write, decides like one that
// was not.
func TestAKilledAgentDecidesLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := seedrun.Rand(t)
		path := filepath.Join(t.TempDir(), "images.json")
		w := newWorld(1000)
		steady, shaky := w.config(), w.config()
		shaky.Path = path
		var log bytes.Buffer
		defer func() { assert.Empty(t, log.String()) }()
		shaky.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		one, other := newManager(t, steady), newManager(t, shaky)
		for i := range 100 {
			switch r.IntN(4) {
			case 0:
				w.pull(fmt.Sprintf("a%d:1", i), layer(fmt.Sprint(i), 10))
			case 1:
				w.use(fmt.Sprint("pod", i), fmt.Sprintf("a%d:1", r.IntN(i+1)))
			case 2:
				w.unuse(fmt.Sprint("pod", r.IntN(i+1)))
			}
			a, err := one.DryRun(t.Context())
			require.NoError(t, err)
			b, err := other.DryRun(t.Context())
			require.NoError(t, err)
			require.Equal(t, decisions(a), decisions(b))

			// It is killed in the middle of the next write.
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".tmp", whole[:r.IntN(len(whole))], 0o600))
			other = newManager(t, shaky)
			time.Sleep(time.Duration(r.IntN(90)) * time.Second)
		}
	})
}

func decisions(p imagegc.Plan) (lines []string) {
	for _, d := range p.Decisions {
		lines = append(lines, d.String())
	}
	return lines
}

func TestAnUnreadableCheckpointIsReportedAndImagesAreNew(t *testing.T) { // ig-6
	path := filepath.Join(t.TempDir(), "images.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	w := newWorld(100)
	w.pull("a:1", layer("a", 90))
	cfg := w.config()
	cfg.Path = path
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	plan, err := newManager(t, cfg).DryRun(t.Context())
	require.NoError(t, err)
	assert.Equal(t, imagegc.ClassTooYoung, plan.Decisions[0].Class)
	assert.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	assert.Contains(t, log.String(), path)

	cfg.Path = filepath.Join(t.TempDir(), "none", "images.json")
	_, err = newManager(t, cfg).DryRun(t.Context())
	require.NoError(t, err, "images are still collected")
	assert.Equal(t, 2, strings.Count(log.String(), "level=ERROR"))
}

func TestTheUsersOfAnImageAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		cfg := w.config()
		cfg.Path = filepath.Join(t.TempDir(), "images.json")
		m := newManager(t, cfg)
		release, err := m.AcquireImages(t.Context(), podWith("web", "a:1"))
		require.NoError(t, err)
		w.pull("a:1", layer("a", 1))
		release()
		_, err = m.DryRun(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Hour)
		plan, err := newManager(t, cfg).DryRun(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "default/web", plan.Decisions[0].Record.PulledBy)
	})
}

// An eviction may be the first pass since an image was pulled: an image whose last pod
// terminated long ago is removed, and a new one is not.
func TestAnImageIsAsOldAsItsLastPin(t *testing.T) { // ig-5, ig-13, ig-16
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		m := newManager(t, w.config())
		for _, image := range []string{"first:1", "second:1"} {
			release, err := m.AcquireImages(t.Context(), podWith("job", image))
			require.NoError(t, err)
			w.pull(image, layer(image, 100))
			release()
			time.Sleep(imagegc.DefaultMinAge - time.Second)
		}
		w.pull("nobodys:1", layer("c", 1))
		time.Sleep(2 * time.Second)
		freed, err := m.DeleteUnused(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 200, freed)
		assert.True(t, w.has("nobodys:1"), "it is seen for the first time")
	})
}
