package containers

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A created instance was not observed to run.
type created struct {
	Container Container `json:"container"`
	Record    record    `json:"record"`
}

// createdInstances are the created instances by Key, each in a file until the backend lists it: an agent
// that is killed between creation and start resumes it, and does not count a restart. As with CRI
// runtimes, the environment is in the file, which only its owner can read.
type createdInstances struct {
	dir  string
	log  *slog.Logger
	load sync.Once
	all  map[string]*created
}

// read loads the files of an earlier agent at the first call. The caller must hold service.mu, as for
// the other methods.
func (c *createdInstances) read() map[string]*created {
	c.load.Do(func() {
		c.all = map[string]*created{}
		entries, _ := os.ReadDir(c.dir) // usually it does not exist yet
		for _, e := range entries {
			key, ok := strings.CutSuffix(e.Name(), ".json")
			if !ok {
				continue
			}
			var inst created
			if err := checkpoint.Read(c.path(key), &inst); err != nil || inst.Container.Key != key || inst.Record.Container == nil {
				c.log.Warn("Ignoring corrupt state file", "path", c.path(key), "err", err)
				_ = os.Remove(c.path(key)) // the container is created again
				continue
			}
			c.all[key] = &inst
		}
	})
	return c.all
}

func (c *createdInstances) path(key string) string { return filepath.Join(c.dir, key+".json") }

func (c *createdInstances) add(inst *created) error {
	c.read()
	err := os.MkdirAll(c.dir, 0o700)
	if err == nil {
		err = checkpoint.WriteUnsynced(c.path(inst.Container.Key), inst)
	}
	if err == nil {
		c.all[inst.Container.Key] = inst
	}
	return err
}

func (c *createdInstances) remove(key string) {
	if _, ok := c.read()[key]; ok {
		delete(c.all, key)
		_ = os.Remove(c.path(key)) // a remaining file is of a listed instance, or is removed with its pod
	}
}
