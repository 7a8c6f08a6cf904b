// Command client-go-peer is client-go's side of the comparison benchmark.
//
// It keeps all pods in a shared informer with one index (spec.nodeName) and one handler, and does
// what the runner asks for: commands are JSON lines on stdin, answers JSON lines on stdout.
// Everything client-go logs goes to stderr.
//
//	client-go-peer --url http://127.0.0.1:8001 --form protobuf --lists stream
//	client-go-peer encode pods.json.bin pods.proto.bin
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	err := run(os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "client-go-peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "encode" {
		if len(args) != 3 {
			return errors.New("usage: client-go-peer encode IN OUT")
		}
		return encode(args[1], args[2])
	}
	options, err := parse(args)
	if err != nil {
		return err
	}
	peer, err := newPeer(options)
	if err != nil {
		return err
	}
	return peer.serve(newConversation(os.Stdin, os.Stdout, options.timeout))
}
