package cri

import (
	"context"
	"encoding/json"
	"fmt"
)

// SandboxImage returns the image of sandboxes in the runtime's configuration, "" if the
// runtime does not report it. Image garbage collection must keep it if the runtime does
// not pin it, as containerd 1.6.
func (r *Runtime) SandboxImage(ctx context.Context) (string, error) {
	answer, err := r.cfg.Runtime.Status(r.quiet(ctx), true)
	if err != nil {
		return "", fmt.Errorf("cri: runtime status: %w", err)
	}
	var config struct {
		SandboxImage string `json:"sandboxImage"`
	}
	if json.Unmarshal([]byte(answer.GetInfo()["config"]), &config) != nil {
		return "", nil // another runtime's format
	}
	return config.SandboxImage, nil
}
