package imagegc_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSizeOfThePodsImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		w.pull("small:1", layer("a", 1))
		w.pull("big:1", layer("b", 100))
		m := newManager(t, w.config())
		of := func(images ...string) int64 { return m.PodBytes(t.Context(), podWith("web", images...)) }
		assert.EqualValues(t, 101, of("small:1", "docker.io/library/big:1", "big:1", "none:1"))
		assert.EqualValues(t, 0, of())
		w.fail["images"] = errors.New("away")
		time.Sleep(time.Minute)
		assert.EqualValues(t, 100, of("big:1"), "as of late")
		delete(w.fail, "images")
		w.pull("new:1", layer("c", 10))
		assert.EqualValues(t, 10, of("new:1"))
	})
}
