package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// seLinuxFileContext returns the context of files of containers, user:role:type:level, that
// the policy in root specifies. It returns "" if no policy for containers is installed.
func seLinuxFileContext(root fs.FS) (string, error) {
	config, err := fs.ReadFile(root, "etc/selinux/config")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	policy := seLinuxSetting(config, "SELINUXTYPE")
	files := []string{"usr/share/containers/selinux/contexts"}
	if policy != "" && policy == path.Base(policy) {
		files = append(files, path.Join("etc/selinux", policy, "contexts/lxc_contexts"))
	}
	for _, file := range files {
		contexts, err := fs.ReadFile(root, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", err
		}
		of := seLinuxSetting(contexts, "file")
		if of != "" && strings.Count(of, ":") < 3 {
			return "", fmt.Errorf("%s: context %q has no level", file, of)
		}
		return of, nil
	}
	return "", nil
}

// seLinuxSetting returns the value of the first line "key = value" or "key = "value"".
func seLinuxSetting(file []byte, key string) string {
	for line := range bytes.Lines(file) {
		name, value, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		if ok && strings.TrimSpace(name) == key {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// seLinuxFileLabel returns the label of the files of a container: the policy's context with the
// user and the level of the container. The role and type of the container apply to processes only.
func seLinuxFileLabel(context string, options *v1.SELinuxOptions) string {
	parts := strings.SplitN(context, ":", 4)
	if options == nil || len(parts) < 4 {
		return context
	}
	if options.User != "" {
		parts[0] = options.User
	}
	if options.Level != "" {
		parts[3] = options.Level
	}
	return strings.Join(parts, ":")
}
