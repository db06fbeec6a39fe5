package cri

import (
	"context"
	"encoding/json"
	"fmt"
)

// SandboxImage returns the name of the image that sandboxes are made of, by what the
// runtime tells of its configuration, so that who collects images can keep it where
// the runtime doesn't pin it (ig-19), as containerd 1.6. "": it doesn't tell.
func (r *Runtime) SandboxImage(ctx context.Context) (string, error) {
	answer, err := r.cfg.Runtime.Status(r.quiet(ctx), true)
	if err != nil {
		return "", fmt.Errorf("cri: runtime status: %w", err)
	}
	var config struct {
		SandboxImage string `json:"sandboxImage"`
	}
	if json.Unmarshal([]byte(answer.GetInfo()["config"]), &config) != nil {
		return "", nil // of a runtime that has something else there
	}
	return config.SandboxImage, nil
}
