package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/agent/claim"
)

// claim reserves the root, the runtime and the cgroups for this process.
func (a *assembly) claim() (release func(), err error) {
	cfg := claim.Config{Root: a.opts.root, RuntimeEndpoint: a.opts.runtime, PodLogsDir: a.opts.logs, Logger: a.logger}
	if a.opts.runtime != "process" && *a.opts.kubelet.CgroupsPerQOS && os.Geteuid() == 0 {
		cfg.CgroupRoot = filepath.Join("/", a.opts.kubelet.CgroupRoot)
	}
	if release, err = claim.Take(cfg); errors.Is(err, claim.ErrInUse) {
		err = fmt.Errorf("%w; stop that process, or choose another --root or --runtime", err)
	}
	return release, err
}
