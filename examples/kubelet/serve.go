package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// serve is the web server of the example pods. On a TERM it finishes what it is
// answering, and ends.
func serve(args []string) error {
	fs := flag.NewFlagSet("agent serve", flag.ContinueOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "`address` to listen on")
	text := fs.String("text", "hello", "what to answer")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	srv := http.Server{Addr: *addr, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %s from %s\n", r.Method, r.URL, r.RemoteAddr)
		fmt.Fprintln(w, *text)
	})}
	fmt.Println("serving on", *addr)
	context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(grace)
	})
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	fmt.Println("stopped by a signal")
	return nil
}
