package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"

	"github.com/kubeparts/kubeparts/agent/statuspage"
)

// A statusPage serves the state of the agent. Nil: it is not served.
type statusPage struct {
	listener net.Listener
	handler  http.Handler
	logger   *slog.Logger
}

func (a *assembly) statusPage(g ground, k knowledge, checks []statuspage.Check, metrics map[string]http.Handler) (*statusPage, error) {
	if a.opts.page == "" {
		return nil, nil
	}
	handlers := map[string]http.Handler{"/stats/summary": http.HandlerFunc(summaryPage(g.usage))}
	maps.Copy(handlers, metrics)
	maps.Copy(handlers, g.leaving.pages())
	cfg := statuspage.Config{
		Agent: k.agent, History: a.seen, NodeName: a.opts.nodeName, Runtime: g.rt.name, Checks: checks,
		Volumes: g.volumes.Manager, Evictions: g.evictions, Stats: g.usage, Handlers: handlers, Logger: a.logger,
	}
	if g.images != nil {
		cfg.Images = g.images.gc
	}
	handler, err := statuspage.New(cfg)
	if err != nil {
		return nil, err
	}
	ln, err := statuspage.Listen(a.opts.page)
	if err != nil {
		return nil, fmt.Errorf("cannot serve /healthz, /pods and /explain; choose another --listen, or end the agent that has it: %w", err)
	}
	if warning := statuspage.Warning(ln.Addr()); warning != "" {
		a.say("warning: " + warning)
	}
	return &statusPage{ln, handler, a.logger}, nil
}

// Run serves until ctx is done.
func (s *statusPage) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return statuspage.Serve(ctx, s.listener, s.handler, s.logger)
}

// where describes how users reach the page.
func (s *statusPage) where() string {
	if s == nil {
		return "there is no status page"
	}
	return statuspage.Reach(s.listener.Addr()) + " shows what runs here"
}

// pageSocket is the name of the status page's socket in the agent's root.
const pageSocket = "agent.sock"

// fillListen sets the address of the status page after the root is known. By default, an
// agent that is a node of a cluster or has a configuration file serves it at a socket in
// its root: other users of the machine may not read the state of its pods.
func (o *options) fillListen() error {
	socket := "unix://" + filepath.Join(o.root, pageSocket)
	_, tooLong := statuspage.Local(socket)
	switch {
	case o.listen != nil && *o.listen != "":
		o.page = *o.listen
		if _, err := statuspage.Local(o.page); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	case o.listen != nil:
		o.page = ""
	case !o.cluster.on() && !o.configured():
		o.page = "127.0.0.1:10258"
	case tooLong != nil:
		o.warnings = append(o.warnings, fmt.Sprintf("no status page: --root=%s: %v; --listen=unix:///PATH names another", o.root, tooLong))
	default:
		o.page = socket
	}
	return nil
}
