package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// adoption are the flags of --adopt.
type adoption struct {
	enabled   bool
	selects   hollow.Selector
	behaviors string // file
	shard     hollow.Shard
	length    time.Duration
	ip        string // of the ports of the nodes
}

// namespaceFile has the namespace of a pod in a cluster.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// config returns the configuration that the flags specify.
func (a adoption) config(logger *slog.Logger) (hollow.Config, error) {
	cfg := hollow.Config{Select: a.selects, Shard: a.shard, Nodes: fakenode.Config{Logger: logger}}
	if a.behaviors != "" {
		text, err := os.ReadFile(a.behaviors)
		if err != nil {
			return cfg, fmt.Errorf("--behaviors: %w", err)
		}
		if cfg.Rules, err = hollow.ParseRules(string(text)); err != nil {
			return cfg, fmt.Errorf("--behaviors: %s: %w", a.behaviors, err)
		}
		for _, warning := range cfg.Rules.Warnings {
			logger.Warn("Part of a Stage has no effect", "file", a.behaviors, "warning", warning)
		}
	}
	if a.shard.Group == "" {
		return cfg, nil
	}
	if cfg.Shard.Namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return cfg, fmt.Errorf("--group requires --namespace outside of a cluster: %w", err)
		}
		cfg.Shard.Namespace = strings.TrimSpace(string(text))
	}
	if cfg.Shard.Identity == "" {
		name, err := os.Hostname()
		if err != nil {
			return cfg, fmt.Errorf("--identity: %w", err)
		}
		cfg.Shard.Identity = strings.ToLower(name)
	}
	return cfg, nil
}

// adopt runs the Node objects of other clients until ctx is done, or for the given time.
func adopt(ctx context.Context, api *rest.Config, a adoption, out io.Writer) error {
	cfg, err := a.config(slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		return err
	}
	if a.ip != "" {
		if cfg.Port, err = servePort(ctx, api, a.ip); err != nil {
			return fmt.Errorf("--ip: %w", err)
		}
	}
	nodes, err := hollow.New(api, cfg)
	if err != nil {
		return err
	}
	if a.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.length)
		defer cancel()
	}
	return nodes.Run(ctx)
}

// check returns an error if flags of --adopt are given without it.
func (a adoption) check() error {
	if !a.enabled && (a.selects != (hollow.Selector{}) || a.behaviors != "" || a.shard != (hollow.Shard{}) || a.length != 0 || a.ip != "") {
		return errors.New("--select-annotations, --select-labels, --behaviors, --group, --namespace, --identity, --lease-duration, --ip and --for require --adopt")
	}
	return nil
}
