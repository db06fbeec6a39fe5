package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

const etcdHelp = `  --listen-client-urls=URL   where /health is served
Other flags have no effect: nothing is stored.
`

// serveEtcd is healthy as etcd is, and stores nothing: the API server keeps its objects in memory.
func serveEtcd(ctx context.Context, args []string, out io.Writer) error {
	values, _, err := parseGiven("etcd", args, nil, etcdHelp, out)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(values["listen-client-urls"], ",")
	at, err := url.Parse(first)
	if err != nil || at.Host == "" {
		return fmt.Errorf("--listen-client-urls=%s is not a URL such as http://127.0.0.1:2379", first)
	}
	listener, err := net.Listen("tcp", at.Host)
	if err != nil {
		return fmt.Errorf("%w: choose another port with --listen-client-urls", err)
	}
	return serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			http.Error(w, "this is testcluster in place of etcd: it stores nothing", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"health":"true","reason":""}`)
	}), nil)
}
