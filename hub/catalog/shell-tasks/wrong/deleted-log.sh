cp out/trace.log recovered.log
