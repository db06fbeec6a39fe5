// Hostpathplugin takes the place of the program of that name in the image of the CSI driver for
// host paths, in the mode in which Kubernetes' tests of resource claims use it: it connects each
// client of a unix socket with a connection to a TCP port, on which the test serves the socket.
//
//	hostpathplugin --endpoint=/plugin/dra.sock --proxy-endpoint=tcp://:9001
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	endpoint := flag.String("endpoint", "", "`path` of the unix socket")
	port := flag.String("proxy-endpoint", "", "`address` of the TCP port, as tcp://:9001")
	flag.Int("v", 0, "not used")
	flag.Parse()
	if err := run(strings.TrimPrefix(*endpoint, "unix://"), strings.TrimPrefix(*port, "tcp://")); err != nil {
		fmt.Fprintln(os.Stderr, "hostpathplugin:", err)
		os.Exit(1)
	}
}

// run proxies until a signal.
func run(socket, port string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier instance
		return err
	}
	clients, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer clients.Close()
	servers, err := net.Listen("tcp", port)
	if err != nil {
		return err
	}
	defer servers.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error, 1)
	go func() { failed <- proxy(clients, servers) }()
	select {
	case err := <-failed:
		return err
	case <-signals:
		return nil
	}
}

// proxy connects each client with the oldest connection of the test, which opens several in
// advance.
func proxy(clients, servers net.Listener) error {
	for {
		client, err := clients.Accept()
		if err != nil {
			return err
		}
		server, err := servers.Accept()
		if err != nil {
			return err
		}
		go func() {
			done := make(chan struct{}, 2)
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1]) // ends with either connection
					done <- struct{}{}
				}()
			}
			<-done
			_ = client.Close()
			_ = server.Close()
			<-done
		}()
	}
}
