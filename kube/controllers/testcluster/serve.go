package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// serve serves until ctx is done, with TLS unless config is nil. Open watches end at once.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config) error {
	server := &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // clients that disconnect, and health checks that ignore the certificate
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	var err error
	if config == nil {
		err = server.Serve(listener)
	} else {
		err = server.ServeTLS(listener, "", "")
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
